/* SPDX-License-Identifier: MIT */
/*
 * refrain verify: re-hashes every entry of a tier directory, or of all tiers of
 * a mount, while they are in use.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"
#include "mount/daemon/json_text.h"
#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "command.h"
#include "progress.h"
#include "mount/store/store.h"

const struct option_usage verify_usage = {
	.name = "verify",
	.operands = "DIR|MOUNTPOINT",
	.summary = "Check every byte of a cache directory, or of all caches "
		   "of a mount, and list the entries that are damaged.",
	.min_operands = 1,
	.max_operands = 1,
};

struct verify {
	struct progress progress;
	uint64_t bytes,
		/* counts in this directory, and in the directories before it */
		before_bytes;
	uint64_t checked, before;
	uint64_t bad;
};

static void bad_entry(void *arg, const char *path, const char *why)
{
	struct verify *v = arg;

	progress_end(&v->progress);
	escape_print(stdout, path);
	(void)printf(": %s\n", why);
}

static void verify_show(void *arg, uint64_t done, uint64_t bytes)
{
	struct verify *v = arg;

	v->bytes = bytes;
	progress_show(&v->progress, v->before + done, v->before_bytes + bytes,
		0, " checked");
}

static int verify_dir(struct verify *v, const char *dir, struct error *err)
{
	uint64_t checked = 0;
	int64_t bad =
		store_verify_dir(dir, bad_entry, verify_show, v, &checked, err);

	v->before += checked;
	v->before_bytes += v->bytes;
	v->bytes = 0;
	if (bad < 0)
		return (int)bad;
	v->bad += (uint64_t)bad;
	return 0;
}

/* Verify one tier of a status. A path that is not UTF-8 is in dir_bytes. */
static int verify_tier(struct verify *v, const json_t *tier, struct error *err)
{
	const json_t *bytes = json_object_get(tier, "dir_bytes");
	CLEANUP_FREE char *dir = NULL;
	int rc = ctl_path_get(
		bytes ? bytes : json_object_get(tier, "dir"), &dir);

	if (rc < 0)
		return error_set(
			err, rc, "the daemon named no cache directory: %m");
	return verify_dir(v, dir, err);
}

static int verify_mount(
	struct verify *v, struct ctl_client *client, struct error *err)
{
	json_t *state = NULL;
	const json_t *tiers;
	int rc = ask_status(client, &state, err);

	if (rc < 0)
		return rc;
	tiers = json_object_get(state, "tiers");
	for (size_t i = 0; rc == 0 && i < json_array_size(tiers); i++)
		rc = verify_tier(v, json_array_get(tiers, i), err);
	json_decref(state);
	return rc;
}

static int verify(struct verify *v, const char *path, struct error *err)
{
	struct ctl_client *client = NULL;
	int rc = ctl_connect(&client, path, err);

	if (rc == -ENODATA)
		return verify_dir(v, path, err);
	if (rc < 0)
		return rc;
	rc = verify_mount(v, client, err);
	ctl_disconnect(client);
	return rc;
}

int cmd_verify(int argc, char **argv)
{
	struct verify v = {.bad = 0};
	struct error err = {""};
	char size[SIZE_TEXT_MAX];
	int status, rc;

	if (command_parse(&verify_usage, argc, argv, NULL, &status) < 0)
		return status;
	progress_begin(&v.progress);
	rc = verify(&v, argv[1], &err);
	progress_end(&v.progress);
	if (rc < 0)
		return command_fail("verify", &err);
	(void)printf("%" PRIu64 " %s (%s) checked, %" PRIu64 " bad\n", v.before,
		ask_plural(v.before, "entry", "entries"),
		size_format(v.before_bytes, size), v.bad);
	return v.bad ? EXIT_FAILED : EXIT_OK;
}

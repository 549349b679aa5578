/* SPDX-License-Identifier: MIT */
/*
 * refrain-exporter: serves the metrics of all mounts and shares over HTTP. One
 * thread.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "command.h"
#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "exporter_options.h"
#include "share_views.h"

struct exporter_shares {
	struct share_questions *questions;
	bool asked; /* share_views_begin() has succeeded */
};

/* Asks the hosts of the shares. A callback of struct exporter_config. */
static void shares_begin(void *arg)
{
	struct exporter_shares *s = arg;

	s->asked = share_views_begin(&s->questions, NULL, NULL) == 0;
}

/* Returns the shares as JSON. A callback of struct exporter_config. Two shares
 * may have the same name in share_seen_json(), so the names are replaced by
 * those of escape_name(), which always differ. */
static json_t *shares_end(void *arg, uint64_t until_ns)
{
	struct exporter_shares *s = arg;
	CLEANUP_FREE struct share_seen *seen = NULL;
	char name[4 * SHARE_FULL_NAME_MAX];
	json_t *all = json_array(), *one;
	size_t n = 0;

	if (s->asked)
		(void)share_views_end(s->questions, until_ns, &seen, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		one = share_seen_json(&seen[i]);
		(void)json_object_set_new(one, "name",
			json_string(
				escape_name(name, sizeof(name), seen[i].name)));
		(void)json_array_append_new(all, one);
	}
	return all;
}

int main(int argc, char **argv)
{
	struct exporter_shares shares = {NULL, false};
	struct exporter_config config = {
		.listen = EXPORTER_LISTEN,
		.shares_begin = shares_begin,
		.shares_end = shares_end,
		.shares = &shares,
	};
	struct error err = {""};
	int status, rc;

	if (command_parse(&exporter_usage, argc, argv, &config, &status) < 0)
		return status;
	rc = exporter_run(&config, &err);
	share_views_free(shares.questions);
	if (rc < 0)
		(void)command_fail("exporter", &err);
	return rc == -EINVAL ? EXIT_USAGE : rc < 0 ? EXIT_FAILED : EXIT_OK;
}

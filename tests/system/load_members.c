/* SPDX-License-Identifier: MIT */
/*
 * Runs a loader whose examples have members, and prints its statistics, a hash
 * of its pixels and one of the members of all servings.
 *
 * usage: load_members MEMBERS NAME=VALUE ...
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "loader/core/settings.h"
#include "refrain/loader.h"

#define MEMBERS_MAX 7

static const char *text;
static uint32_t members;
static _Atomic uint64_t sum; /* in any order */

static int map(void *arg, const struct member_serving *s)
{
	uint64_t h = hash64(&s->index, sizeof(s->index), s->seed);

	(void)arg;
	for (uint32_t i = 0; i < members; i++)
		h = s->members[i].data
			? hash64(s->members[i].data, s->members[i].bytes, h)
			: h + 1;
	sum += h;
	return 0;
}

/* In place of that of the library: examples may lack all but the first. */
int settings_members(struct settings *s, struct error *err)
{
	(void)err;
	s->members = (struct settings_members){
		.text = text, .optional = UINT32_MAX - 1, .map = map};
	return 0;
}

static int run(struct refrain_loader *l)
{
	const struct refrain_batch *b;
	char json[1 << 14];
	uint64_t pixels = 0;
	int rc;

	while ((rc = refrain_next(l, &b, 60000)) == 1) {
		pixels = hash64(b->data, b->data_bytes, pixels);
		refrain_release(b);
	}
	if (rc < 0 || refrain_stats_json(l, json, sizeof(json)) < 0)
		return -1;
	json[strlen(json) - 1] = '\0';
	(void)printf("%s,\"pixel_hash\":\"%016" PRIx64
		     "\",\"members_hash\":\"%016" PRIx64 "\"}\n",
		json, pixels, sum);
	return 0;
}

int main(int argc, char **argv)
{
	struct refrain_config c;
	struct refrain_loader *l;
	int rc = argc > 1 ? 0 : -1;

	refrain_config_init(&c);
	text = argc > 1 ? argv[1] : "";
	members = 1;
	for (const char *at = text; *at; at++)
		members += *at == ';';
	for (int i = 2; rc == 0 && i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value || members > MEMBERS_MAX)
			return 2;
		*value++ = '\0';
		rc = refrain_config_set(&c, argv[i], value);
	}
	if (rc == 0)
		rc = refrain_open(&l, &c);
	if (rc < 0) {
		(void)fprintf(
			stderr, "load_members: %s\n", refrain_message(NULL));
		return 1;
	}
	if (run(l) < 0) {
		(void)fprintf(stderr, "load_members: %s\n", refrain_message(l));
		rc = 1;
	}
	(void)refrain_close(l);
	return rc;
}

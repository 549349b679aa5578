/* SPDX-License-Identifier: MIT */
/* Asks the hosts of all shares of this user for their views at once. */
#ifndef TOOLS_SHARE_VIEWS_H
#define TOOLS_SHARE_VIEWS_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"
#include "loader/share/share.h"

/* The answer of a share's host. */
struct share_seen {
	char name[SHARE_FULL_NAME_MAX];
	int rc; /* 1: `view` is set; -errno: `err` has the reason */
	struct share_view view;
	struct error err;
};

struct share_questions;

/* Ask the hosts of all shares. With a name, ask only those of the share NAME
 * and of its ranks, NAME.RANK-WORLD. *questions is NULL in the first call; a
 * later call gets the questions of the one before. Returns 0 or -errno. */
int share_views_begin(struct share_questions **questions, const char *name,
	struct error *err);

/* Wait for the answers until a time of the clock, but not for hosts that were
 * silent in the call before. *seen gets *n shares, without those that no
 * process hosts; the caller frees it. */
int share_views_end(struct share_questions *questions, uint64_t until_ns,
	struct share_seen **seen, size_t *n, struct error *err);

/* Free the questions; NULL is allowed. */
void share_views_free(struct share_questions *questions);

/* Returns a word for what a job does, such as "works". */
const char *share_job_state(
	const struct share_view *view, const struct share_job *job);

/* Returns the JSON object of a share for --json; NULL if memory is short. */
json_t *share_view_json(const struct share_view *view);
/* Returns the same object; or if the share has no view, one with its name and
 * the reason. */
json_t *share_seen_json(const struct share_seen *seen);

#endif

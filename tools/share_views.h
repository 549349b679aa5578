/* SPDX-License-Identifier: MIT */
/* Asks the hosts of this user's shares for their views, all at once. */
#ifndef TOOLS_SHARE_VIEWS_H
#define TOOLS_SHARE_VIEWS_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"
#include "loader/share/share.h"

/* A share that was asked. */
struct share_seen {
	char name[SHARE_FULL_NAME_MAX];
	int rc; /* 1: `view` is set. -errno: `err` says why it is not */
	struct share_view view;
	struct error err;
};

struct share_questions;

/*
 * Ask the hosts of all shares, or with a name only of the share NAME and those
 * of its ranks, NAME.RANK-WORLD. *questions is NULL at first, and those of the
 * time before later. -errno.
 */
int share_views_begin(struct share_questions **questions, const char *name,
	struct error *err);

/*
 * Wait for the answers until a time of the clock, but not for hosts that were
 * silent the time before. *seen has *n shares, without those that nobody hosts;
 * the caller frees it.
 */
int share_views_end(struct share_questions *questions, uint64_t until_ns,
	struct share_seen **seen, size_t *n, struct error *err);

void share_views_free(struct share_questions *questions); /* or NULL */

/* What a job does: "works". */
const char *share_job_state(
	const struct share_view *view, const struct share_job *job);

/* The object of a share for --json; NULL for want of memory. */
json_t *share_view_json(const struct share_view *view);
/* The same, or only its name and why it cannot be shown. */
json_t *share_seen_json(const struct share_seen *seen);

#endif

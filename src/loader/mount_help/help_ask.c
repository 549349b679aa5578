/* SPDX-License-Identifier: MIT */
/* Sends one request to the mount and waits for its answer. If the answer is
 * late, reads that wait for it continue without it. Called by the thread of
 * mount help. */
#include <errno.h>

#include "loader/mount_help/help_impl.h"

/* A daemon that has not answered for this time is given up. */
#define ANSWER_MS 10000

static void set_late(struct mount_help *m, bool late)
{
	turn_lock(m->c.turn);
	m->late = late;
	turn_unlock(m->c.turn);
}

int help_ask(struct mount_help *m, size_t bytes, const char **line,
	size_t *line_bytes)
{
	char *text = NULL;
	int rc = talk_send(&m->talk, m->request, bytes);

	if (rc == 0)
		rc = talk_wait(&m->talk, HELP_LATE_MS, &text, line_bytes);
	if (rc == -ETIMEDOUT) {
		set_late(m, true);
		rc = talk_wait(&m->talk, ANSWER_MS, &text, line_bytes);
		set_late(m, false);
	}
	*line = text;
	return rc;
}

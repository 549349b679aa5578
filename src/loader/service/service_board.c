/* SPDX-License-Identifier: MIT */
/* Values, lists and notes on a board; see service_board.h. */
#include "loader/service/service_board.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

int board_get(struct asker *board, const char *key, char *value, size_t room)
{
	struct service_call c;
	int rc;

	call_get(&c, key, value, room);
	rc = calls_make(board, &c, 1);
	if (rc < 0)
		return rc;
	return c.kind == META_VA && !c.cut ? (int)c.bytes : -ENOENT;
}

/* -- Lists ----------------------------------------------------------------- */

static unsigned ids_in(const char *list, size_t bytes)
{
	size_t at = 0, len;
	unsigned count = 0;

	for (; (len = roster_next(list, bytes, &at)) > 0; at += len)
		count++;
	return count;
}

/* Change a list by `change`, in one try: if somebody else changes the list at
 * the same time, the caller tries again later. */
static int list_change(struct asker *board, const char *key, const char *id,
	size_t (*change)(char *list, size_t bytes, const char *id),
	unsigned *count)
{
	CLEANUP_FREE char *list = malloc(ROSTER_MAX);
	struct service_call c;
	size_t before, after;
	bool there;
	int rc;

	if (!list)
		return -ENOMEM;
	call_get(&c, key, list, ROSTER_MAX);
	rc = calls_make(board, &c, 1);
	if (rc < 0)
		return rc;
	there = c.kind == META_VA;
	before = there && !c.cut ? c.bytes : 0;
	after = change(list, before, id);
	*count = ids_in(list, after ? after : before);
	if (after == before)
		return 0;
	if (after > 0)
		call_put(&c, key, list, after, there ? CALL_COMPARE : CALL_ADD,
			c.cas, SERVICE_LIST_TTL_S);
	else if (change == roster_drop)
		call_delete(&c, key, c.cas); /* that was the only id */
	else
		return 0; /* the list is full */
	return calls_make(board, &c, 1);
}

int board_join(
	struct asker *board, const char *key, const char *id, unsigned *count)
{
	return list_change(board, key, id, roster_add, count);
}

int board_leave(struct asker *board, const char *key, const char *id)
{
	unsigned count;

	return list_change(board, key, id, roster_drop, &count);
}

/* -- Notes ----------------------------------------------------------------- */

int board_notes(struct asker *board, struct hash128 job, const char *except,
	struct reader_note *notes)
{
	CLEANUP_FREE char *list = malloc(ROSTER_MAX);
	CLEANUP_FREE char *text =
		malloc((size_t)SERVICE_READERS_MAX * READER_NOTE_MAX);
	struct service_call calls[SERVICE_READERS_MAX];
	char key[SERVICE_KEY_MAX], id[SERVICE_ID_MAX + 1];
	unsigned n = 0, count = 0;
	size_t at = 0, len;
	int bytes, rc;

	if (!list || !text)
		return -ENOMEM;
	(void)service_job_key(key, job, "readers");
	bytes = board_get(board, key, list, ROSTER_MAX);
	if (bytes < 0)
		return bytes == -ENOENT ? 0 : bytes;
	for (; n < SERVICE_READERS_MAX &&
		(len = roster_next(list, (size_t)bytes, &at)) > 0;
		at += len) {
		(void)snprintf(id, sizeof(id), "%.*s", (int)len, list + at);
		if (except && strcmp(id, except) == 0)
			continue;
		(void)service_reader_key(key, job, id);
		call_get(&calls[n], key, text + n * READER_NOTE_MAX,
			READER_NOTE_MAX);
		n++;
	}
	rc = calls_make(board, calls, n);
	for (unsigned i = 0; i < n; i++)
		if (calls[i].status == 0 && calls[i].kind == META_VA &&
			reader_note_parse(calls[i].value, calls[i].bytes,
				&notes[count]) == 0)
			count++;
	return rc < 0 ? rc : (int)count;
}

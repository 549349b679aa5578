/* SPDX-License-Identifier: MIT */
/*
 * What readers and workers do on a board alike: they get values, keep their ids
 * in lists, and look at the notes of readers. Each call asks the board and
 * waits for its answers.
 */
#ifndef SERVICE_BOARD_H
#define SERVICE_BOARD_H

#include "loader/service/service_call.h"
#include "loader/service/service_state.h"

#define SERVICE_LIST_TTL_S 600u
#define SERVICE_READERS_MAX 64u /* of one job that are looked at */

/* Get a value. Returns its length; -ENOENT if there is none that fits; or
 * -errno if the board does not answer. */
int board_get(struct asker *board, const char *key, char *value, size_t room);

/* Keep an id in a list. Sets *count to the number of ids in the list. Returns 0
 * or -errno. */
int board_join(
	struct asker *board, const char *key, const char *id, unsigned *count);
/* Take an id out of a list. */
int board_leave(struct asker *board, const char *key, const char *id);

/* Get the notes of the readers of a job, except that of the reader `except`
 * (NULL: of all). `notes` has room for SERVICE_READERS_MAX. Returns their
 * number, or -errno. */
int board_notes(struct asker *board, struct hash128 job, const char *except,
	struct reader_note *notes);

#endif

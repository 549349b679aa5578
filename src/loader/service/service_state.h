/* SPDX-License-Identifier: MIT */
/*
 * The texts on a board: the state of a range, which says who has claimed or
 * made it; the note of a reader, which says what the reader needs; and lists of
 * ids. Pure functions; the bytes on a board are not trusted. States of a range:
 *
 * 	(no key)      -> RANGE_CLAIMED  add, by a worker
 * 	RANGE_CLAIMED -> RANGE_DONE     compare-and-set, by that worker
 * 	RANGE_CLAIMED -> (no key)       it expires
 * 	(no key)      -> RANGE_LOCAL    add, by a reader
 * 	RANGE_DONE -> (no key) a reader deletes it
 */
#ifndef SERVICE_STATE_H
#define SERVICE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memcached/memcached_address.h"
#include "common/schedule/schedule.h"
#include "loader/service/service_names.h"

enum range_kind {
	RANGE_CLAIMED, /* a worker makes the samples */
	RANGE_DONE,    /* the samples are in a store */
	RANGE_LOCAL,   /* a reader makes the samples itself */
};

/* Lifetimes of the states, in seconds. A claim is renewed each second. */
#define RANGE_CLAIM_TTL_S 4
#define RANGE_DONE_TTL_S 600
#define RANGE_LOCAL_TTL_S 60

struct range_state {
	enum range_kind kind;
	/* claimed: the worker; local: the reader */
	char who[SERVICE_ID_MAX + 1];
	/* Claimed: a random number that identifies the claim. The number that
	 * memcached gives a value does not, because it begins anew when
	 * memcached restarts */
	uint64_t nonce;
	/* Claimed, done: where the samples are or will be. A worker that has
	 * lost its claim keeps what it pushed if the range names the same
	 * store: the winner has found these samples and does not push its own.
	 */
	char store[ADDRESS_MAX + 1];
	uint32_t mask; /* done: bit i: all samples of example i are there */
	uint32_t ms;   /* done: time in ms from the claim to the end */
};

/* Room for the text of a state, NUL included. */
#define RANGE_STATE_MAX (ADDRESS_MAX + SERVICE_ID_MAX + 64u)

/* Write a state as text. Returns the length of the text. */
size_t range_state_text(
	const struct range_state *s, char text[RANGE_STATE_MAX]);
/* Parse the text of a state. Returns 0 or -EBADMSG. */
int range_state_parse(const void *text, size_t bytes, struct range_state *out);

/* The note of a reader: what it needs. Workers compute the names of the samples
 * from the note. */
struct reader_note {
	/* The schedule: options, and a state from schedule_save() */
	uint32_t rank, world, batch, lag;
	uint64_t window;
	struct schedule_echo echo;
	uint32_t state_bytes;
	uint8_t state[SCHEDULE_STATE_BYTES];
	/* Fresh numbers. Samples of examples before `cursor` are not needed any
	 * more. Workers should make those from `begin` to `end` - 1. The reader
	 * itself makes samples before `begin` that are not in a store yet,
	 * because a worker could not finish them in time. */
	uint64_t cursor, begin, end;
	/* number of fresh examples that the trainer takes in 1000 s */
	uint32_t demand;
	uint32_t pid;
	char host[SERVICE_ID_MAX + 1];
};

#define READER_TTL_S 6

/* Room for the text of a note, NUL included. */
#define READER_NOTE_MAX (2u * SCHEDULE_STATE_BYTES + SERVICE_ID_MAX + 256u)

/* Write a note as text. Returns the length of the text. */
size_t reader_note_text(
	const struct reader_note *n, char text[READER_NOTE_MAX]);
/* Parse the text of a note. Returns 0 or -EBADMSG. */
int reader_note_parse(const void *text, size_t bytes, struct reader_note *out);

/* Are these bytes the id of a reader, a worker or a job: 1 to SERVICE_ID_MAX
 * letters, digits, '.', '_' and '-'? */
bool service_is_id(const char *id, size_t bytes);

/* Limits of a list of ids, which spaces separate. */
#define ROSTER_NAMES_MAX 256u
#define ROSTER_MAX (ROSTER_NAMES_MAX * (SERVICE_ID_MAX + 1))

/* Find the next id of a list from offset *at on. Returns its length and sets
 * *at to its first byte; 0 at the end. Anything that is not an id is skipped.
 */
size_t roster_next(const char *list, size_t bytes, size_t *at);
/* Add an id at the end of a list of `bytes` bytes. Returns the new length,
 * which is the old one if the list has the id already; 0 if the list is full.
 */
size_t roster_add(char list[ROSTER_MAX], size_t bytes, const char *id);
/* Remove an id from a list. Returns the new length. */
size_t roster_drop(char list[ROSTER_MAX], size_t bytes, const char *id);

#endif

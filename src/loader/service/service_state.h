/* SPDX-License-Identifier: MIT */
/*
 * The states that lie on a board, as text: who has claimed a range or made it,
 * what a reader needs, and lists of names. Pure functions; the bytes on a board
 * are not trusted. States of a range:
 *
 *	(no key)      -> RANGE_CLAIMED  add, by a worker
 *	RANGE_CLAIMED -> RANGE_DONE     compare-and-set, by that worker
 *	RANGE_CLAIMED -> (no key)       it expires
 *	(no key)      -> RANGE_LOCAL    add, by a reader
 *	RANGE_DONE    -> (no key)       deleted by a reader
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
	RANGE_CLAIMED, /* a worker makes it */
	RANGE_DONE,    /* it is in a store */
	RANGE_LOCAL,   /* a reader makes it itself */
};

/* Lifetimes of the states, in seconds. A claim is renewed each second. */
#define RANGE_CLAIM_TTL_S 4
#define RANGE_DONE_TTL_S 600
#define RANGE_LOCAL_TTL_S 60

struct range_state {
	enum range_kind kind;
	char who[SERVICE_ID_MAX + 1]; /* claimed, local: worker or reader */
	/* Claimed: a random number. The number that memcached gives a value
	 * begins anew when it restarts, so it alone does not tell whose a claim
	 * is */
	uint64_t nonce;
	/* Claimed, done: where the samples are or will be. A worker that has
	 * lost its claim keeps what it pushed if the range names the same
	 * store: the winner has found these samples and does not push its own.
	 */
	char store[ADDRESS_MAX + 1];
	uint32_t mask; /* done: bit i: all samples of example i are there */
	uint32_t ms;   /* done: time from the claim on */
};

/* Room for the text of a state, NUL included. */
#define RANGE_STATE_MAX (ADDRESS_MAX + SERVICE_ID_MAX + 64u)

/* Returns the length of the text. */
size_t range_state_text(
	const struct range_state *s, char text[RANGE_STATE_MAX]);
/* Returns 0 or -EBADMSG. */
int range_state_parse(const void *text, size_t bytes, struct range_state *out);

/* What a reader needs. Workers compute the names of the samples from it. */
struct reader_note {
	/* The schedule: options, and a state from schedule_save() */
	uint32_t rank, world, batch, lag;
	uint64_t window;
	struct schedule_echo echo;
	uint32_t state_bytes;
	uint8_t state[SCHEDULE_STATE_BYTES];
	/* Fresh numbers: samples of lower ones than `cursor` are not needed any
	 * more; workers should make those from `begin` to `end` - 1. The reader
	 * makes those before `begin` itself, unless they are there already: a
	 * worker could not finish them in time. */
	uint64_t cursor, begin, end;
	uint32_t demand; /* fresh examples in 1000 s of the trainer */
	uint32_t pid;
	char host[SERVICE_ID_MAX + 1];
};

#define READER_TTL_S 6

/* Room for the text of a note, NUL included. */
#define READER_NOTE_MAX (2u * SCHEDULE_STATE_BYTES + SERVICE_ID_MAX + 256u)

/* Returns the length of the text. */
size_t reader_note_text(
	const struct reader_note *n, char text[READER_NOTE_MAX]);
/* Returns 0 or -EBADMSG. */
int reader_note_parse(const void *text, size_t bytes, struct reader_note *out);

/* Is this an id of a reader, a worker or a job: 1 to SERVICE_ID_MAX letters,
 * digits, '.', '_' and '-'? */
bool service_is_id(const char *id, size_t bytes);

/* A list of ids, separated by spaces. */
#define ROSTER_NAMES_MAX 256u
#define ROSTER_MAX (ROSTER_NAMES_MAX * (SERVICE_ID_MAX + 1))

/* Find the next id of a list after *at. Returns its length and sets *at to its
 * first byte; 0 at the end. Anything that is not an id is skipped. */
size_t roster_next(const char *list, size_t bytes, size_t *at);
/* Add an id at the end of a list of `bytes` bytes. Returns the new length; the
 * old one if the id is there already; 0 if the list is full. */
size_t roster_add(char list[ROSTER_MAX], size_t bytes, const char *id);
/* Remove an id. Returns the new length. */
size_t roster_drop(char list[ROSTER_MAX], size_t bytes, const char *id);

#endif

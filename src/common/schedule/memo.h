/* SPDX-License-Identifier: MIT */
/*
 * Remembers the arrangement of the last few blocks of a stream. Computing where
 * one slot of a block goes takes as long as computing the whole block, but
 * slots are usually looked up in order. Any thread may call; a lock guards the
 * blocks, and it is held while a block is computed.
 */
#ifndef SCHEDULE_MEMO_H
#define SCHEDULE_MEMO_H

#include <stdint.h>

struct memo;

/* Identifies a block. */
struct memo_key {
	uint64_t of[4];
};

/* Compute the `n` values of a block. */
typedef void memo_fill_fn(const void *arg, const struct memo_key *key,
	uint64_t *values, uint32_t n);

/* Create a memo for blocks of at most `values_max` values. Returns 0 or
 * -ENOMEM. */
int memo_new(struct memo **out, uint32_t values_max);
void memo_free(struct memo *memo); /* NULL is allowed */

uint64_t memo_bytes(uint32_t values_max);

/* Returns value `at` of a block of `n` values. Calls `fill` if the block is not
 * remembered. */
uint64_t memo_value(struct memo *memo, const struct memo_key *key, uint32_t n,
	uint32_t at, memo_fill_fn *fill, const void *arg);

#endif

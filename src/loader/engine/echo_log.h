/* SPDX-License-Identifier: MIT */
/*
 * The log of the changes of an echo factor, as text and in memory. Another run
 * that makes the same changes serves the same stream. No lock: the owner's.
 */
#ifndef ENGINE_ECHO_LOG_H
#define ENGINE_ECHO_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/schedule/schedule.h"

/* A line of the log: the arguments of schedule_change(). */
struct echo_change {
	uint64_t step;
	struct schedule_echo echo;
};

/* Zero it to begin. */
struct echo_log {
	struct echo_change *lines;
	uint32_t count;
	size_t room; /* private */
};

void echo_log_free(struct echo_log *log);

/* Make room for one more line, so that the next echo_log_add() cannot fail.
 * Returns -ENOMEM, or -ENOSPC if the log is as long as it may be. */
int echo_log_reserve(struct echo_log *log);
void echo_log_add(
	struct echo_log *log, uint64_t step, struct schedule_echo echo);

/* Append the lines "STEP P/Q" of a text. Returns -EINVAL with the number of a
 * line that is not one, or -ENOMEM. */
int echo_log_parse(struct echo_log *log, const char *text, struct error *err);

/* Write lines [from, to) as text. Returns its length, or -ENOSPC. */
int echo_log_print(const struct echo_log *log, uint64_t from, uint64_t to,
	char *buf, size_t size);

#endif

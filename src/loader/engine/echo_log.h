/* SPDX-License-Identifier: MIT */
/*
 * The log of the changes of an echo factor, as text and in memory. Another run
 * that makes the same changes serves the same stream. The owner must lock it.
 */
#ifndef ENGINE_ECHO_LOG_H
#define ENGINE_ECHO_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/schedule/schedule.h"

/* A line of the log. The members are the arguments of schedule_change(). */
struct echo_change {
	uint64_t step;
	struct schedule_echo echo;
};

/* Initialise this with zeros. */
struct echo_log {
	struct echo_change *lines;
	uint32_t count;
	size_t room; /* private */
};

void echo_log_free(struct echo_log *log);

/* Make room for one more line, so that the next echo_log_add() cannot fail.
 * Returns 0, -ENOMEM, or -ENOSPC if the log has its maximum length. */
int echo_log_reserve(struct echo_log *log);
void echo_log_add(
	struct echo_log *log, uint64_t step, struct schedule_echo echo);

/* Parse lines "STEP P/Q" and append them to the log. Returns 0, -ENOMEM, or
 * -EINVAL with the number of the first malformed line in err. */
int echo_log_parse(struct echo_log *log, const char *text, struct error *err);

/* Write the lines from `from` to `to` - 1 as text. Returns the length of the
 * text, or -ENOSPC. */
int echo_log_print(const struct echo_log *log, uint64_t from, uint64_t to,
	char *buf, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* The log of the changes of an echo factor; see echo_log.h. */
#include "loader/engine/echo_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

/* The maximum number of changes; there is at most one in a window. A run with
 * more changes keeps the last factor. */
#define CHANGES_MAX (UINT32_C(1) << 20)
#define LINE_MAX_BYTES 32

void echo_log_free(struct echo_log *log)
{
	free(log->lines);
	*log = (struct echo_log){0};
}

int echo_log_reserve(struct echo_log *log)
{
	return log->count == CHANGES_MAX
		? -ENOSPC
		: ARRAY_ROOM(log->lines, log->count, &log->room);
}

void echo_log_add(
	struct echo_log *log, uint64_t step, struct schedule_echo echo)
{
	log->lines[log->count++] = (struct echo_change){step, echo};
}

static int parse_line(const char *line, size_t n, struct echo_change *out)
{
	char text[LINE_MAX_BYTES + 1], *end;
	unsigned long long step;

	if (n > LINE_MAX_BYTES || *line < '0' || *line > '9')
		return -EINVAL;
	memcpy(text, line, n);
	text[n] = '\0';
	errno = 0;
	step = strtoull(text, &end, 10);
	if (errno || *end != ' ')
		return -EINVAL;
	out->step = step;
	return schedule_echo_parse(end + 1, &out->echo, NULL);
}

int echo_log_parse(struct echo_log *log, const char *text, struct error *err)
{
	for (; *text; text += text[0] == '\n') {
		size_t n = strcspn(text, "\n");
		struct echo_change change;

		if (parse_line(text, n, &change) < 0)
			return error_set(err, -EINVAL,
				"echo_log line %u is not \"STEP P/Q\"",
				log->count + 1);
		if (echo_log_reserve(log) < 0)
			return error_set(
				err, -ENOMEM, "no memory for the echo_log");
		echo_log_add(log, change.step, change.echo);
		text += n;
	}
	return 0;
}

int echo_log_print(const struct echo_log *log, uint64_t from, uint64_t to,
	char *buf, size_t size)
{
	size_t used = 0;

	if (!size)
		return -ENOSPC;
	*buf = '\0';
	for (uint64_t i = from; i < to; i++) {
		const struct echo_change *c = &log->lines[i];
		int n = snprintf(buf + used, size - used, "%" PRIu64 " %u/%u\n",
			c->step, c->echo.p, c->echo.q);

		if ((size_t)n >= size - used)
			return -ENOSPC;
		used += (size_t)n;
	}
	return (int)used;
}

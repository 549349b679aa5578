/* SPDX-License-Identifier: MIT */
/*
 * The lines of an order on standard input, which can be read again from the
 * first: a pipe is copied to a file without a name. One thread.
 */
#ifndef ORDER_LINES_H
#define ORDER_LINES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct order_lines {
	int end;     /* of a line */
	off_t start; /* in standard input; -1: it is a pipe */
	FILE *copy;  /* of what came from a pipe, or NULL */
	bool copied; /* lines of the copy come first */
};

/* `null`: lines end with NUL. */
void order_lines_begin(struct order_lines *o, bool null);

/* Like getline(), without the end of the line. */
ssize_t order_lines_next(struct order_lines *o, char **line, size_t *room);

/* The next line is the first one; false: it cannot be read again. */
bool order_lines_rewind(struct order_lines *o);

void order_lines_release(struct order_lines *o);

#endif

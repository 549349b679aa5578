/* SPDX-License-Identifier: MIT */
/*
 * Reads the lines of an order from standard input. It can be read again from
 * the first line: lines from a pipe are copied to a file without a name. One
 * thread.
 */
#ifndef ORDER_LINES_H
#define ORDER_LINES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct order_lines {
	int end;     /* character that ends a line */
	off_t start; /* offset in standard input; -1: it is a pipe */
	FILE *copy;  /* copy of the lines from a pipe, or NULL */
	bool copied; /* read lines of the copy first */
};

/* Begin. `null`: lines end with NUL. */
void order_lines_begin(struct order_lines *o, bool null);

/* Like getline(), without the end of the line. */
ssize_t order_lines_next(struct order_lines *o, char **line, size_t *room);

/* Return to the first line. Returns false if the lines cannot be read again. */
bool order_lines_rewind(struct order_lines *o);

void order_lines_release(struct order_lines *o);

#endif

/* SPDX-License-Identifier: MIT */
/* Reads the lines of an order from standard input. The caller can return to the
 * first line: if standard input is a pipe, each line is copied to a file
 * without a name. One thread. */
#ifndef ORDER_LINES_H
#define ORDER_LINES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct order_lines {
	int end; /* character that ends a line */
	/* offset of the first line in standard input; -1: it is a pipe */
	off_t start;
	FILE *copy; /* file with copies of the lines, or NULL */
	/* after a rewind: read the lines of the copy before the pipe */
	bool copied;
};

/* Start to read. `null`: a NUL ends each line. */
void order_lines_begin(struct order_lines *o, bool null);

/* Like getline(), but without the character that ends the line. */
ssize_t order_lines_next(struct order_lines *o, char **line, size_t *room);

/* Return to the first line. Returns false if the lines cannot be read again. */
bool order_lines_rewind(struct order_lines *o);

void order_lines_release(struct order_lines *o);

#endif

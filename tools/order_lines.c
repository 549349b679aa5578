/* SPDX-License-Identifier: MIT */
/* Reads the lines of an order; see order_lines.h. One thread. */
#include "order_lines.h"

void order_lines_begin(struct order_lines *o, bool null)
{
	*o = (struct order_lines){
		.end = null ? '\0' : '\n',
		.start = ftello(stdin),
	};
	if (o->start < 0)
		o->copy = tmpfile();
}

static void order_lines_drop(struct order_lines *o)
{
	if (o->copy)
		/* loses nothing that is needed: the file has no name */
		(void)fclose(o->copy);
	o->copy = NULL;
}

static ssize_t order_lines_copied(
	struct order_lines *o, char **line, size_t *room)
{
	ssize_t len = getdelim(line, room, o->end, o->copy);

	if (len < 0) {
		o->copied = false;
		/* cannot fail: the position is at the end already */
		(void)fseek(o->copy, 0, SEEK_END);
	}
	return len;
}

ssize_t order_lines_next(struct order_lines *o, char **line, size_t *room)
{
	ssize_t len = o->copied ? order_lines_copied(o, line, room) : -1;

	if (len < 0) {
		len = getdelim(line, room, o->end, stdin);
		/* If the copy of a line cannot be written, order_lines_rewind()
		 * will fail. */
		if (len > 0 && o->copy &&
			fwrite(*line, 1, (size_t)len, o->copy) != (size_t)len)
			order_lines_drop(o);
	}
	if (len > 0 && (*line)[len - 1] == o->end)
		(*line)[--len] = '\0';
	return len;
}

bool order_lines_rewind(struct order_lines *o)
{
	if (o->copy)
		rewind(o->copy);
	else if (o->start < 0 || fseeko(stdin, o->start, SEEK_SET) < 0)
		return false;
	o->copied = o->copy != NULL;
	return true;
}

void order_lines_release(struct order_lines *o)
{
	order_lines_drop(o);
}

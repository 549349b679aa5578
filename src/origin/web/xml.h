/* SPDX-License-Identifier: MIT */
/* Parses answers in XML as they arrive, and reports the end of each element
 * with its text. Documents with a DTD, deep nesting or long texts are refused.
 */
#ifndef WEB_XML_H
#define WEB_XML_H

#include <stddef.h>

struct xml;

struct xml_events {
	/* Names are passed without their namespace prefix. `parent` is "" at
	 * the root. */
	void (*begin)(void *arg, const char *name);
	void (*end)(void *arg, const char *parent, const char *name, char *text,
		size_t len);
	void *arg;
};

/* Create a parser. Returns NULL if memory is short. `events` is copied. */
struct xml *xml_new(const struct xml_events *events);
void xml_free(struct xml *x); /* NULL is allowed */

/* Parse a piece. Returns 0, or -EBADMSG if the document is not well-formed or
 * exceeds a limit. */
int xml_feed(struct xml *x, const void *data, size_t len);

/* End the document, which must be complete. Returns 0 or -EBADMSG. */
int xml_finish(struct xml *x);

/* Prepare the parser for another document. Returns 0 or -ENOMEM. */
int xml_restart(struct xml *x);

/* -- Errors and other small documents -------------------------------------- */

/* Copy the text of the first element `name` to `out`; "" if there is none. */
void xml_find(
	const void *doc, size_t len, const char *name, char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* Parses XML with expat, which no other file uses. A parser is used by one
 * thread at a time. */
#include "origin/web/xml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#define DEPTH_MAX 16
#define TEXT_MAX 8192u
#define NAME_MAX_BYTES 64u
/* The maximum length of a token. The limit is needed because expat keeps a
 * token that is not complete, and parses it again with each piece. */
#define TOKEN_MAX (1u << 20)
#define PIECE_MAX (64u << 10)

struct xml {
	XML_Parser parser;
	struct xml_events events;
	unsigned depth;
	bool refused;
	size_t unfinished; /* bytes since the last token ended */
	char names[DEPTH_MAX][NAME_MAX_BYTES];
	size_t len; /* length of the text of the innermost element */
	char text[TEXT_MAX + 1];
};

static void xml_refuse(struct xml *x)
{
	x->refused = true;
	/* the parser will not continue */
	(void)XML_StopParser(x->parser, XML_FALSE);
}

static const char *local_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

static void on_start(void *arg, const char *name, const char **attributes)
{
	struct xml *x = arg;
	const char *local = local_name(name);

	(void)attributes;
	x->unfinished = 0;
	if (x->depth == DEPTH_MAX || strlen(local) >= NAME_MAX_BYTES) {
		xml_refuse(x);
		return;
	}
	strcpy(x->names[x->depth++], local);
	x->len = 0;
	if (x->events.begin)
		x->events.begin(x->events.arg, local);
}

static void on_end(void *arg, const char *name)
{
	struct xml *x = arg;

	(void)name;
	x->unfinished = 0;
	if (x->refused || x->depth == 0)
		return;
	x->depth--;
	x->text[x->len] = '\0';
	if (x->events.end)
		x->events.end(x->events.arg,
			x->depth > 0 ? x->names[x->depth - 1] : "",
			x->names[x->depth], x->text, x->len);
	x->len = 0;
}

static void on_text(void *arg, const char *text, int len)
{
	struct xml *x = arg;

	x->unfinished = 0;
	if (len < 0 || x->len + (size_t)len > TEXT_MAX) {
		xml_refuse(x);
		return;
	}
	memcpy(x->text + x->len, text, (size_t)len);
	x->len += (size_t)len;
}

/* Called for comments and other parts that are not elements. */
static void on_other(void *arg, const char *text, int len)
{
	struct xml *x = arg;

	(void)text;
	(void)len;
	x->unfinished = 0;
}

static void on_doctype(void *arg, const char *name, const char *system_id,
	const char *public_id, int has_subset)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)has_subset;
	xml_refuse(arg);
}

static void set_handlers(struct xml *x)
{
	XML_SetUserData(x->parser, x);
	XML_SetElementHandler(x->parser, on_start, on_end);
	XML_SetCharacterDataHandler(x->parser, on_text);
	XML_SetDefaultHandler(x->parser, on_other);
	XML_SetStartDoctypeDeclHandler(x->parser, on_doctype);
	x->depth = 0;
	x->len = 0;
	x->refused = false;
	x->unfinished = 0;
}

struct xml *xml_new(const struct xml_events *events)
{
	struct xml *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->parser = XML_ParserCreate(NULL);
	if (!x->parser) {
		free(x);
		return NULL;
	}
	x->events = *events;
	set_handlers(x);
	return x;
}

void xml_free(struct xml *x)
{
	if (!x)
		return;
	XML_ParserFree(x->parser);
	free(x);
}

int xml_restart(struct xml *x)
{
	if (!XML_ParserReset(x->parser, NULL))
		return -ENOMEM;
	set_handlers(x);
	return 0;
}

int xml_feed(struct xml *x, const void *data, size_t len)
{
	const char *at = data;

	for (size_t n; len > 0; at += n, len -= n) {
		n = len < PIECE_MAX ? len : PIECE_MAX;
		x->unfinished += n;
		if (XML_Parse(x->parser, at, (int)n, 0) != XML_STATUS_OK ||
			x->refused || x->unfinished > TOKEN_MAX)
			return -EBADMSG;
	}
	return 0;
}

int xml_finish(struct xml *x)
{
	if (XML_Parse(x->parser, NULL, 0, 1) != XML_STATUS_OK || x->refused)
		return -EBADMSG;
	return 0;
}

/* -- Small documents ------------------------------------------------------- */

struct finding {
	const char *name;
	char *out;
	size_t size;
	bool found;
};

static void find_end(
	void *arg, const char *parent, const char *name, char *text, size_t len)
{
	struct finding *f = arg;

	(void)parent;
	if (f->found || strcmp(name, f->name) != 0 || len >= f->size)
		return;
	memcpy(f->out, text, len + 1);
	f->found = true;
}

void xml_find(
	const void *doc, size_t len, const char *name, char *out, size_t size)
{
	struct finding f = {name, out, size, false};
	struct xml_events events = {.end = find_end, .arg = &f};
	struct xml *x = xml_new(&events);

	*out = '\0';
	if (!x)
		return;
	/* A malformed end does not matter if the result was found before it. */
	(void)xml_feed(x, doc, len);
	xml_free(x);
}

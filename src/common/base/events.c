/* SPDX-License-Identifier: MIT */
/* The table of events and their messages. No state, any thread. */
#include "common/base/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/escape.h"

/* Maximum length of a name in a message. Longer names are cut. */
#define NAME_SHOWN_MAX 120

const struct event_info event_table[EVENT_KINDS] = {
#define EVENT(kind, level, name, message, action)                              \
	{name, EVENT_##level, message, action},
#include "common/base/events.def"
#undef EVENT
};

const char *event_level_name(enum event_level level)
{
	static const char *const names[] = {
		"error", "warning", "notice", "info"};

	return names[level];
}

struct line {
	char *buf;
	size_t size, used;
};

static void add_text(struct line *l, const char *text)
{
	while (*text && l->used + 1 < l->size)
		l->buf[l->used++] = *text++;
	l->buf[l->used] = '\0';
}

/* Append a name. If it is too long, its beginning is left out, because the end
 * of a path tells more. */
static void events_add_name(struct line *l, const char *name)
{
	char shown[NAME_SHOWN_MAX + 1];
	size_t n = name ? strlen(name) : 0;

	if (n > NAME_SHOWN_MAX) {
		add_text(l, "...");
		name += n - (NAME_SHOWN_MAX - 3);
	}
	if (n > 0)
		add_text(l, escape_text(shown, sizeof(shown), name));
}

static void add_field(struct line *l, char letter, const struct event *e)
{
	char text[384] = "";
	struct error why;

	switch (letter) {
	case 'p': /* the path of the root is empty */
		events_add_name(l, e->path && !*e->path ? "/" : e->path);
		return;
	case 'd':
		events_add_name(l, e->dir);
		return;
	case 's':
		if (e->text)
			(void)escape_text(text, sizeof(text), e->text);
		break;
	case 'n':
		(void)snprintf(text, sizeof(text), "%" PRIu64, e->n);
		break;
	case '+':
		(void)strcpy(text, e->n == 1 ? "" : "s");
		break;
	case 'e':
		(void)error_set(&why, e->status, "%m");
		add_text(l, why.msg);
		return;
	}
	add_text(l, text);
}

const char *event_format(char *buf, size_t size, const struct event *e)
{
	const char *at = event_table[e->kind].message;
	struct line l = {buf, size, 0};

	buf[0] = '\0';
	for (; *at; at++) {
		if (at[0] == '%' && at[1])
			add_field(&l, *++at, e);
		else
			add_text(&l, (char[]){*at, '\0'});
	}
	return buf;
}

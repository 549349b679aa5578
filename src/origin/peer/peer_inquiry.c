/* SPDX-License-Identifier: MIT */
/* Asks a server for its settings and use; see peer_inquiry_impl.h. */
#include "origin/peer/peer_inquiry_impl.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_TEXT 32u

/* A question to a server. It is freed when the answer comes. */
struct question {
	struct request q;
	struct inquiry *i;
	enum peer_match *match; /* this member and those below are for a note */
	char note[NOTE_TEXT + 1];
};

static void question_end(struct question *q, int status)
{
	struct inquiry *i = q->i;

	free(q);
	if (--i->nasked == 0 && status == 0)
		i->told(i, i->now_ns);
}

static void question_answered(struct request *r, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct question *q = CONTAINER_OF(r, struct question, q);

	(void)value;
	if (status == 0 && a->kind == META_STAT) {
		server_stat(&q->i->server, a->text, a->text_bytes);
		return;
	}
	if (status == 0 && a->kind == META_VERSION)
		server_version(&q->i->server, a->text, a->text_bytes);
	question_end(q, status);
}

/* Handle a note, which the server's host has stored in it. */
static void note_answered(struct request *r, int status,
	const struct meta_answer *a, const uint8_t *value)
{
	struct question *q = CONTAINER_OF(r, struct question, q);

	if (status == 0 && a->kind == META_VA)
		*q->match = a->value_bytes == NOTE_TEXT &&
				memcmp(value, q->note, NOTE_TEXT) == 0
			? PEER_MATCH_SAME
			: PEER_MATCH_DIFFERS;
	else if (status == 0 && a->kind == META_HD)
		*q->match = PEER_MATCH_SAME; /* it is this host's own server */
	else
		*q->match = PEER_MATCH_UNKNOWN;
	question_end(q, status);
}

static struct question *question_new(struct inquiry *i, uint64_t now_ns)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->i = i;
	i->nasked++;
	i->now_ns = now_ns;
	return q;
}

static void question_ask(
	struct inquiry *i, struct wire *w, const char *line, uint64_t now_ns)
{
	struct question *q = question_new(i, now_ns);

	if (!q)
		return;
	q->q.answered = question_answered;
	q->q.plain = true;
	q->q.lines = line[0] == 's';
	request_line(&q->q, "%s", line);
	wire_queue(w, &q->q, now_ns);
}

/* Ask for a note. Every host stores its notes in its own server, and the other
 * hosts compare them with theirs. */
static void question_note(struct inquiry *i, struct wire *w, const char *key,
	struct hash128 note, enum peer_match *match)
{
	struct question *q = question_new(i, i->now_ns);

	if (!q)
		return;
	q->match = match;
	*hash128_put(q->note, note) = 0;
	q->q.answered = note_answered;
	if (i->self) {
		request_line(&q->q, "ms %s %u T0", key, NOTE_TEXT);
		q->q.body = q->note;
		q->q.body_bytes = NOTE_TEXT;
	} else {
		request_line(&q->q, "mg %s v", key);
	}
	wire_queue(w, &q->q, i->now_ns);
}

static void question_secret(struct inquiry *i, struct wire *w)
{
	char key[UNIT_KEY_MAX];

	(void)unit_secret_key(key, i->dataset);
	question_note(
		i, w, key, (struct hash128){.lo = i->secret_mark}, &i->secret);
}

static void question_digest(struct inquiry *i, struct wire *w)
{
	char key[UNIT_KEY_MAX];

	(void)unit_manifest_key(key, i->dataset);
	question_note(i, w, key, i->digest, &i->manifest);
}

void inquiry_settings(struct inquiry *i, struct wire *w, uint64_t now_ns)
{
	server_init(&i->server);
	i->manifest = i->secret = PEER_MATCH_UNKNOWN;
	question_ask(i, w, "version", now_ns);
	question_ask(i, w, "stats settings", now_ns);
	question_ask(i, w, "stats", now_ns);
	if (i->named)
		question_secret(i, w);
}

void inquiry_use(struct inquiry *i, struct wire *w, uint64_t now_ns)
{
	if (i->nasked > 0)
		return;
	question_ask(i, w, "stats", now_ns);
	if (i->named)
		question_secret(i, w);
	if (i->has_digest)
		question_digest(i, w);
}

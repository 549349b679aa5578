/* SPDX-License-Identifier: MIT */
/* The states on a board, as text; see service_state.h. */
#include "loader/service/service_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/hex.h"

/* -- Words ----------------------------------------------------------------- */

/* A text that is parsed word by word. One space separates two words. */
struct state_words {
	const char *at, *end;
	bool bad;
};

/* Get the next word, which must not be empty. Returns its length. */
static size_t state_word(struct state_words *w, const char **word)
{
	const char *from = w->at, *stop;

	*word = from;
	if (w->bad || from >= w->end) {
		w->bad = true;
		return 0;
	}
	stop = memchr(from, ' ', (size_t)(w->end - from));
	if (!stop)
		stop = w->end;
	w->bad = stop == from || stop + 1 == w->end;
	w->at = stop < w->end ? stop + 1 : stop;
	return (size_t)(stop - from);
}

static uint64_t state_number(struct state_words *w, unsigned base, uint64_t max)
{
	const char *word;
	size_t len = state_word(w, &word);
	uint64_t n = 0;

	for (size_t i = 0; i < len && !w->bad; i++) {
		int digit = hex_value(word[i]);

		w->bad = digit < 0 || (unsigned)digit >= base ||
			n > (max - (uint64_t)digit) / base;
		n = n * base + (uint64_t)digit;
	}
	return w->bad ? 0 : n;
}

static uint32_t state_u32(struct state_words *w)
{
	return (uint32_t)state_number(w, 10, UINT32_MAX);
}

static uint64_t state_u64(struct state_words *w)
{
	return state_number(w, 10, UINT64_MAX);
}

/* Take a word of printable characters. */
static void state_text(struct state_words *w, char *out, size_t max)
{
	const char *word;
	size_t len = state_word(w, &word);

	out[0] = 0;
	if (len > max)
		w->bad = true;
	for (size_t i = 0; i < len && !w->bad; i++)
		w->bad = word[i] < '!' || word[i] > '~';
	if (w->bad)
		return;
	memcpy(out, word, len);
	out[len] = 0;
}

static void state_id(struct state_words *w, char out[SERVICE_ID_MAX + 1])
{
	state_text(w, out, SERVICE_ID_MAX);
	if (!w->bad && !service_is_id(out, strlen(out)))
		w->bad = true;
}

static int state_end(const struct state_words *w)
{
	return w->bad || w->at != w->end ? -EBADMSG : 0;
}

/* -- The state of a range -------------------------------------------------- */

size_t range_state_text(const struct range_state *s, char text[RANGE_STATE_MAX])
{
	int len = 0;

	switch (s->kind) {
	case RANGE_CLAIMED:
		len = snprintf(text, RANGE_STATE_MAX, "T %s %" PRIx64 " %s",
			s->who, s->nonce, s->store);
		break;
	case RANGE_DONE:
		len = snprintf(text, RANGE_STATE_MAX, "D %s %" PRIx32 " %u",
			s->store, s->mask, s->ms);
		break;
	case RANGE_LOCAL:
		len = snprintf(text, RANGE_STATE_MAX, "L %s", s->who);
		break;
	}
	return (size_t)len;
}

int range_state_parse(const void *text, size_t bytes, struct range_state *out)
{
	struct state_words w = {text, (const char *)text + bytes, false};
	const char *kind;

	*out = (struct range_state){.kind = RANGE_LOCAL};
	if (state_word(&w, &kind) != 1)
		return -EBADMSG;
	switch (*kind) {
	case 'T':
		out->kind = RANGE_CLAIMED;
		state_id(&w, out->who);
		out->nonce = state_number(&w, 16, UINT64_MAX);
		state_text(&w, out->store, ADDRESS_MAX);
		break;
	case 'D':
		out->kind = RANGE_DONE;
		state_text(&w, out->store, ADDRESS_MAX);
		out->mask = (uint32_t)state_number(&w, 16, UINT32_MAX);
		out->ms = state_u32(&w);
		break;
	case 'L':
		state_id(&w, out->who);
		break;
	default:
		return -EBADMSG;
	}
	/* The address is checked here, once, for every process that will
	 * connect to it. */
	if (!w.bad && out->store[0] && address_check(out->store, NULL) < 0)
		return -EBADMSG;
	return state_end(&w);
}

/* -- A reader -------------------------------------------------------------- */

size_t reader_note_text(const struct reader_note *n, char text[READER_NOTE_MAX])
{
	static const char digits[] = "0123456789abcdef";
	int len = snprintf(text, READER_NOTE_MAX,
		"%u %u %u %u %" PRIu64 " %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
		" %u %u %s ",
		n->rank, n->world, n->batch, n->lag, n->window, n->echo.p,
		n->echo.q, n->cursor, n->begin, n->end, n->demand, n->pid,
		n->host);
	char *at = text + len;

	for (uint32_t i = 0; i < n->state_bytes; i++) {
		*at++ = digits[n->state[i] >> 4];
		*at++ = digits[n->state[i] & 15];
	}
	*at = 0;
	return (size_t)(at - text);
}

static void state_bytes(struct state_words *w, struct reader_note *out)
{
	const char *word;
	size_t len = state_word(w, &word);

	if (len % 2 || len / 2 > sizeof(out->state))
		w->bad = true;
	for (size_t i = 0; i < len && !w->bad; i += 2) {
		int high = hex_value(word[i]), low = hex_value(word[i + 1]);

		w->bad = high < 0 || low < 0;
		out->state[i / 2] = (uint8_t)(high << 4 | low);
	}
	out->state_bytes = w->bad ? 0 : (uint32_t)(len / 2);
}

/* Are the numbers within the limits in which workers can compute without
 * overflow? */
static bool is_sane(const struct reader_note *n)
{
	return n->rank < n->world && n->batch > 0 &&
		n->batch <= SCHEDULE_BATCH_MAX && n->lag <= SCHEDULE_LAG_MAX &&
		n->window <= SCHEDULE_WINDOW_MAX && n->echo.q > 0 &&
		n->echo.q <= SCHEDULE_DENOMINATOR_MAX &&
		n->echo.p >= n->echo.q &&
		n->echo.p <= (uint64_t)SCHEDULE_ECHO_MAX * n->echo.q &&
		n->cursor <= n->begin && n->begin <= n->end &&
		n->end <= SCHEDULE_GLOBAL_MAX;
}

int reader_note_parse(const void *text, size_t bytes, struct reader_note *out)
{
	struct state_words w = {text, (const char *)text + bytes, false};
	struct reader_note n = {0};

	n.rank = state_u32(&w);
	n.world = state_u32(&w);
	n.batch = state_u32(&w);
	n.lag = state_u32(&w);
	n.window = state_u64(&w);
	n.echo.p = state_u32(&w);
	n.echo.q = state_u32(&w);
	n.cursor = state_u64(&w);
	n.begin = state_u64(&w);
	n.end = state_u64(&w);
	n.demand = state_u32(&w);
	n.pid = state_u32(&w);
	state_id(&w, n.host);
	state_bytes(&w, &n);
	*out = n;
	return is_sane(&n) ? state_end(&w) : -EBADMSG;
}

/* -- Lists of ids ---------------------------------------------------------- */

bool service_is_id(const char *id, size_t bytes)
{
	if (bytes == 0 || bytes > SERVICE_ID_MAX)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		char c = id[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9') || c == '.' || c == '_' ||
			    c == '-'))
			return false;
	}
	return true;
}

size_t roster_next(const char *list, size_t bytes, size_t *at)
{
	while (*at < bytes) {
		const char *from = list + *at;
		const char *space = memchr(from, ' ', bytes - *at);
		size_t len = space ? (size_t)(space - from) : bytes - *at;

		if (service_is_id(from, len))
			return len;
		*at += len + 1;
	}
	return 0;
}

/* Returns the position of the id in the list; `bytes` if the list does not
 * contain the id. */
static size_t roster_find(
	const char *list, size_t bytes, const char *id, unsigned *count)
{
	size_t at = 0, len, id_len = strlen(id), found = bytes;

	*count = 0;
	while ((len = roster_next(list, bytes, &at)) > 0) {
		if (len == id_len && memcmp(list + at, id, len) == 0)
			found = at;
		++*count;
		at += len;
	}
	return found;
}

size_t roster_add(char list[ROSTER_MAX], size_t bytes, const char *id)
{
	size_t len = strlen(id);
	unsigned count;

	if (roster_find(list, bytes, id, &count) < bytes)
		return bytes;
	if (count >= ROSTER_NAMES_MAX || bytes + 1 + len > ROSTER_MAX)
		return 0;
	if (bytes > 0)
		list[bytes++] = ' ';
	memcpy(list + bytes, id, len);
	return bytes + len;
}

size_t roster_drop(char list[ROSTER_MAX], size_t bytes, const char *id)
{
	size_t len = strlen(id), at, stop;
	unsigned count;

	at = roster_find(list, bytes, id, &count);
	if (at == bytes)
		return bytes;
	stop = at + len;
	if (stop < bytes)
		stop++; /* also remove the space after the id */
	else if (at > 0)
		at--; /* also remove the space before the id */
	memmove(list + at, list + stop, bytes - stop);
	return bytes - (stop - at);
}

/* SPDX-License-Identifier: MIT */
/*
 * Follows READs; doc/control-protocol.md describes the lines that the daemon
 * sends. Keeps the texts that the daemon's slots stand for.
 */
#include "analysis/fleet/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fleet/request.h"
#include "common/base/array.h"
#include "common/base/clock.h"

#define SLOTS_MAX (1u << 20)
#define LOOK_MS 100
/* The daemon sends a line each second. */
#define SILENT_MS (5 * 1000)
/* Number of numbers for each READ in a line. */
#define READ_NUMBERS 7

struct follow_slot {
	char *text;
	pid_t process;
};

struct follow_slots {
	struct follow_slot *at;
	size_t room;
};

struct follower {
	const struct read_follow *how;
	struct follow_slots processes, paths;
	bool begun;
	int rc; /* -ENOMEM or -EBADMSG if a line could not be used */
};

static struct follow_slot *slot_at(struct follow_slots *s, json_int_t n)
{
	if (n < 0 || n >= SLOTS_MAX ||
		ARRAY_ROOM_ZEROED(s->at, (size_t)n, &s->room) < 0)
		return NULL;
	return &s->at[n];
}

static void slots_free(struct follow_slots *s)
{
	for (size_t i = 0; i < s->room; i++)
		free(s->at[i].text);
	free(s->at);
}

static json_int_t number_at(const json_t *array, size_t i)
{
	return json_integer_value(json_array_get(array, i));
}

/* Store the texts of a line's slots. Each element has the number of the slot,
 * the process if `width` is 3, and the text. */
static int take_slots(
	struct follow_slots *slots, const json_t *array, size_t width)
{
	for (size_t i = 0; i + width <= json_array_size(array); i += width) {
		struct follow_slot *s = slot_at(slots, number_at(array, i));
		const char *text =
			json_string_value(json_array_get(array, i + width - 1));

		if (!s || !text)
			return -EBADMSG;
		free(s->text);
		s->text = strdup(text);
		if (!s->text)
			return -ENOMEM;
		if (width == 3)
			s->process = (pid_t)number_at(array, i + 1);
	}
	return 0;
}

static int take_read(struct follower *f, const json_t *reads, size_t i)
{
	const struct follow_slot *process =
		slot_at(&f->processes, number_at(reads, i + 1));
	const struct follow_slot *path =
		slot_at(&f->paths, number_at(reads, i + 2));
	json_int_t source = number_at(reads, i + 5);
	struct followed_read r = {
		.end_us = (uint64_t)number_at(reads, i),
		.off = (uint64_t)number_at(reads, i + 3),
		.len = (uint64_t)number_at(reads, i + 4),
		.us = (uint64_t)number_at(reads, i + 6),
	};

	if (!process || !process->text || !path || !path->text || source < 0 ||
		source > READ_TRACE_FAILED)
		return -EBADMSG;
	r.source = (enum latency_kind)source;
	r.process = process->process;
	r.program = process->text;
	r.path = path->text;
	f->how->read(f->how->arg, &r);
	return 0;
}

static void take_trace_line(void *arg, const json_t *line)
{
	struct follower *f = arg;
	const json_t *reads = json_object_get(line, "reads");
	uint64_t lost = ask_number(line, "lost");

	if (!f->begun && f->how->begun)
		f->how->begun(f->how->arg);
	f->begun = true;
	if (lost > 0 && f->how->lost)
		f->how->lost(f->how->arg, lost);
	f->rc = take_slots(
		&f->processes, json_object_get(line, "processes"), 3);
	if (f->rc == 0)
		f->rc = take_slots(
			&f->paths, json_object_get(line, "paths"), 2);
	for (size_t i = 0;
		f->rc == 0 && i + READ_NUMBERS <= json_array_size(reads);
		i += READ_NUMBERS)
		f->rc = take_read(f, reads, i);
}

/* Receive lines until the trace ends. */
static int follow_lines(
	struct ctl_client *client, struct follower *f, struct error *err)
{
	uint64_t heard_ns = clock_now_ns();

	while (!f->how->over(f->how->arg)) {
		json_t *reply = NULL;
		int rc = ctl_client_line(
			client, LOOK_MS, take_trace_line, f, &reply, err);

		json_decref(reply);
		if (rc > 0)
			return error_set(err, -EPIPE, "the daemon has ended");
		if (rc == 0)
			heard_ns = clock_now_ns();
		if (rc == 0 && f->rc < 0)
			return error_set(err, f->rc,
				"the daemon sent an invalid line: %m");
		if (rc < 0 &&
			(rc != -ETIMEDOUT ||
				clock_now_ns() - heard_ns >
					SILENT_MS * NS_PER_MS))
			return rc;
	}
	return 0;
}

int follow_reads(struct ctl_client *client, const struct read_follow *how,
	struct error *err)
{
	struct follower f = {.how = how};
	json_t *request = json_pack("{s:s, s:I, s:i}", "cmd", "trace",
		"slow_us", (json_int_t)how->slow_us, "pid", (int)how->process);
	int rc = ctl_client_send(client, request, err);

	if (rc == 0)
		rc = follow_lines(client, &f, err);
	slots_free(&f.processes);
	slots_free(&f.paths);
	return rc;
}

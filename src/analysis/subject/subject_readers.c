/* SPDX-License-Identifier: MIT */
/* The threads that read from a mount under analysis: their number, estimated
 * from the threads of the last reads, and the times from one file of a thread
 * to its next. The workers of the session note reads. The thread of a control
 * connection reads the counts, and may miss reads that are just being noted. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "analysis/subject/subject_readers_impl.h"

/* -- Times ----------------------------------------------------------------- */

/* Get the times for which a thread has used a processor and has waited for one.
 * Both are 0 if the kernel does not report them. */
static void look_at_thread(pid_t thread, uint64_t *ran_ns, uint64_t *delayed_ns)
{
	char path[32], text[96], *end;
	CLEANUP_FD int fd = -1;
	ssize_t n;

	*ran_ns = *delayed_ns = 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	*ran_ns = strtoull(text, &end, 10);
	*delayed_ns = strtoull(end, NULL, 10);
}

static uint64_t lesser_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Set a sum, and return by how much it has grown. If the old sum is larger, it
 * is that of another thread; then return 0. */
static uint64_t swap_sum(_Atomic uint64_t *was, uint64_t now)
{
	uint64_t before =
		atomic_exchange_explicit(was, now, memory_order_relaxed);

	return now > before ? now - before : 0;
}

static void add_us(_Atomic uint64_t *sum, uint64_t ns)
{
	(void)atomic_fetch_add_explicit(
		sum, ns / NS_PER_US, memory_order_relaxed);
}

static void add_interval(struct readers *r, uint64_t ns)
{
	double octave = log2((double)(ns / NS_PER_US + 1));
	unsigned at = (unsigned)(octave * INTERVALS_OCTAVE);

	if (at >= INTERVALS)
		at = INTERVALS - 1;
	(void)atomic_fetch_add_explicit(&r->count[at], 1, memory_order_relaxed);
	add_us(&r->length_us[at], ns);
}

static void note_times(struct readers *r, pid_t thread)
{
	struct reader_slot *s = &r->slot[(unsigned)thread % READERS_SLOTS];
	uint64_t now_ns = clock_now_ns(), ran_ns, delayed_ns, length_ns;
	int was = atomic_exchange_explicit(
		&s->thread, (int)thread, memory_order_relaxed);

	look_at_thread(thread, &ran_ns, &delayed_ns);
	length_ns = swap_sum(&s->begun_ns, now_ns);
	ran_ns = swap_sum(&s->ran_ns, ran_ns);
	delayed_ns = lesser_ns(swap_sum(&s->delayed_ns, delayed_ns), length_ns);
	if (was != (int)thread)
		return;
	length_ns -= delayed_ns;
	add_interval(r, length_ns);
	add_us(&r->ran_us, lesser_ns(ran_ns, length_ns));
	add_us(&r->delayed_us, delayed_ns);
}

json_t *readers_intervals(const struct readers *r)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < INTERVALS; i++) {
		uint64_t n = atomic_load_explicit(
			&r->count[i], memory_order_relaxed);

		if (n > 0)
			(void)json_array_append_new(all,
				json_pack("[I, I, I]", (json_int_t)i,
					(json_int_t)n,
					(json_int_t)atomic_load_explicit(
						&r->length_us[i],
						memory_order_relaxed)));
	}
	return all;
}

/* -- Their number ---------------------------------------------------------- */

void readers_note(struct readers *r, pid_t thread)
{
	unsigned at =
		atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);

	atomic_store_explicit(&r->thread[at % READERS_LOOK], (int)thread,
		memory_order_relaxed);
	if (thread > 0)
		note_times(r, thread);
}

static bool is_among(const int *thread, unsigned n, int wanted)
{
	for (unsigned i = 0; i < n; i++)
		if (thread[i] == wanted)
			return true;
	return false;
}

unsigned readers_count(const struct readers *r)
{
	unsigned all = atomic_load_explicit(&r->next, memory_order_relaxed);
	unsigned looks = all < READERS_LOOK ? all : READERS_LOOK, n = 0;
	int thread[READERS_LOOK];

	for (unsigned i = 0; i < looks; i++) {
		thread[n] = atomic_load_explicit(
			&r->thread[i], memory_order_relaxed);
		if (thread[n] == 0)
			return 0;
		n += !is_among(thread, n, thread[n]);
	}
	return n;
}

/* SPDX-License-Identifier: MIT */
/*
 * Counts the threads that read from a mount that is analysed, by those of the
 * last reads. Entered by the workers of the session; a count is by a thread of
 * a control connection, and may miss what happens meanwhile.
 */
#include "daemon/mount_impl.h"

void readers_note(struct readers *r, pid_t thread)
{
	unsigned at =
		atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);

	atomic_store_explicit(&r->thread[at % READERS_LOOK], (int)thread,
		memory_order_relaxed);
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

/* SPDX-License-Identifier: MIT */
/* The threads that read from a mount under analysis: how many there are, and
 * the times from one of their files to the next. */
#ifndef SUBJECT_READERS_IMPL_H
#define SUBJECT_READERS_IMPL_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* The number of readers is the number of different threads among this many last
 * reads. */
#define READERS_LOOK 128

/* Number of threads whose last read is stored. Threads with the same index
 * replace each other. */
#define READERS_SLOTS 1024

/* Classes of the times from one file of a thread to its next: eight for each
 * factor of two, from 1 us to an hour. */
#define INTERVALS_OCTAVE 8
#define INTERVALS (32 * INTERVALS_OCTAVE)

struct reader_slot {
	atomic_int thread;
	/* Time at which the thread began its last file, and the times for which
	 * it had used a processor and had waited for one until then. */
	_Atomic uint64_t begun_ns, ran_ns, delayed_ns;
};

/* All members are relaxed, because no other data depends on them. */
struct readers {
	atomic_uint next;
	atomic_int thread[READERS_LOOK]; /* the threads of the last reads */
	struct reader_slot slot[READERS_SLOTS];
	/* Sums. Intervals do not include the time of waiting for a processor.
	 */
	_Atomic uint64_t count[INTERVALS], length_us[INTERVALS];
	_Atomic uint64_t ran_us, delayed_us;
};

/* Note that a thread begins to read a file. 0: the thread is not visible here.
 */
void readers_note(struct readers *r, pid_t thread);

/* Returns the intervals as [[class of lengths, count, sum in us], ...], without
 * empty classes. */
json_t *readers_intervals(const struct readers *r);

/* Returns the number of different threads among the last reads; 0: unknown. */
unsigned readers_count(const struct readers *r);

#endif

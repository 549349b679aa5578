/* SPDX-License-Identifier: MIT */
/* A descriptor that polls readable while a flag is set; see ready.h. */
#include "loader/core/ready.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FLAG 1u	   /* the flag that ready_set() sets */
#define WRITTEN 2u /* the descriptor polls readable; set by the writer */
#define WRITER 4u  /* a thread is writing */

int ready_open(struct ready *r)
{
	atomic_init(&r->state, 0);
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return r->fd < 0 ? -errno : 0;
}

void ready_close(struct ready *r)
{
	if (r->fd >= 0)
		(void)close(r->fd); /* nothing is lost if this fails */
	r->fd = -1;
}

int ready_fd(const struct ready *r)
{
	return r->fd;
}

bool ready_set(struct ready *r, bool ready)
{
	unsigned was = ready ? atomic_fetch_or(&r->state, FLAG)
			     : atomic_fetch_and(&r->state, ~FLAG);

	return (was & FLAG) != (ready ? FLAG : 0);
}

static bool write_is_due(unsigned state)
{
	return !(state & WRITER) && !(state & FLAG) != !(state & WRITTEN);
}

/* Become the thread that writes to the descriptor, and set *begun, unless the
 * descriptor is up to date or another thread is writing. Returns the state. */
static unsigned begin_writing(struct ready *r, bool *begun)
{
	unsigned state = atomic_load(&r->state);

	*begun = false;
	while (write_is_due(state) && !*begun)
		*begun = atomic_compare_exchange_weak(
			&r->state, &state, state | WRITER);
	return state;
}

/* Write to the descriptor or read from it. Neither can block or fail, because
 * the eventfd holds 0 or 1 and WRITTEN says which. */
static void write_flag(struct ready *r, bool written)
{
	uint64_t value = 1;

	if (written)
		(void)!read(r->fd, &value, sizeof(value));
	else
		(void)!write(r->fd, &value, sizeof(value));
	atomic_fetch_xor(&r->state, WRITER | WRITTEN);
}

void ready_write(struct ready *r)
{
	for (;;) {
		bool begun;
		unsigned state = begin_writing(r, &begun);

		if (begun)
			write_flag(r, state & WRITTEN);
		else if ((state & FLAG) || !(state & WRITER))
			return;
		else
			(void)sched_yield();
	}
}

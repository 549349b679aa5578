/* SPDX-License-Identifier: MIT */
/* The heap of idle originals; see idle_files_impl.h. Called with the turn's
 * lock held. */
#include "loader/engine/idle_files_impl.h"

#include <errno.h>
#include <stdlib.h>

#include "loader/engine/originals_impl.h"

int idle_init(struct idle *idle, uint32_t room)
{
	*idle = (struct idle){.heap = calloc(room, sizeof(*idle->heap))};
	return idle->heap ? 0 : -ENOMEM;
}

void idle_release(struct idle *idle)
{
	free(idle->heap);
	idle->heap = NULL;
}

uint64_t idle_bytes(uint64_t room)
{
	return room * sizeof(struct original *);
}

static void idle_put(struct idle *idle, uint32_t at, struct original *o)
{
	idle->heap[at] = o;
	o->idle_at = at;
}

/* Move the free place at index `at` up to where `o` belongs. Returns its new
 * index. */
static uint32_t sift_up(
	struct idle *idle, uint32_t at, const struct original *o)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / 2;

		if (idle->heap[parent]->next_step >= o->next_step)
			break;
		idle_put(idle, at, idle->heap[parent]);
		at = parent;
	}
	return at;
}

static uint32_t sift_down(
	struct idle *idle, uint32_t at, const struct original *o)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < idle->count &&
			idle->heap[child + 1]->next_step >
				idle->heap[child]->next_step)
			child++;
		if (child >= idle->count ||
			idle->heap[child]->next_step <= o->next_step)
			return at;
		idle_put(idle, at, idle->heap[child]);
		at = child;
	}
}

void idle_add(struct idle *idle, struct original *o)
{
	uint32_t at = idle->count++;

	idle_put(idle, sift_up(idle, at, o), o);
}

void idle_remove(struct idle *idle, struct original *o)
{
	struct original *other = idle->heap[--idle->count];
	uint32_t at = o->idle_at;

	if (other != o)
		idle_put(idle, sift_down(idle, sift_up(idle, at, other), other),
			other);
}

struct original *idle_last(const struct idle *idle)
{
	return idle->count ? idle->heap[0] : NULL;
}

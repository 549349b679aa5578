/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing a loader, and asking it. Opening builds the parts in
 * order, on the caller's thread, so that whatever is wrong is said at once;
 * closing is bounded: what hangs in the kernel is left behind with all that it
 * may still write to. loader_impl.h says how the parts work together.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "loader/loader_impl.h"
#include "loader/mount_impl.h"

#define READS_END_NS (400 * NS_PER_MS)
#define CLOSE_NS (900 * NS_PER_MS)
/* Below that nothing can be read and decoded at a time. */
#define WORKING_BYTES ((uint64_t)256 << 10)
#define WORKER_BYTES ((uint64_t)64 << 10)
#define ENTRIES_SPARE 64

/* Of the calling thread: the copy that refrain_message() gave out. */
static __thread struct error message_copy;

/* -- Opening --------------------------------------------------------------- */

/* Slabs in the making, and one that is lent. */
static uint32_t slab_count(const struct refrain_loader *l)
{
	return l->s.c.batches_ahead + 1;
}

static uint64_t entry_count(const struct refrain_loader *l)
{
	const struct refrain_config *c = &l->s.c;

	return l->outstanding_max +
		((uint64_t)c->batches_ahead + 2) * c->batch + l->s.ahead_max +
		ENTRIES_SPARE;
}

static uint64_t tables_bytes(const struct refrain_loader *l)
{
	const struct refrain_config *c = &l->s.c;
	uint64_t place = sizeof(struct schedule_slot) + sizeof(struct serving);

	return sizeof(*l) + dataset_memory_bytes(l->dataset) +
		entries_bytes(entry_count(l)) +
		(uint64_t)c->batches_ahead * c->batch * place +
		c->batch * sizeof(struct example) +
		c->reads_ahead * sizeof(struct read_op);
}

static int check_memory(struct refrain_loader *l, struct error *err)
{
	uint64_t fixed = lender_bytes(&l->s, slab_count(l)) + tables_bytes(l);
	uint64_t least = fixed + WORKING_BYTES + l->s.c.threads * WORKER_BYTES;

	l->memory.limit = l->s.c.memory_bytes;
	if (least > l->s.c.memory_bytes)
		return error_set(err, -ENOMEM,
			"memory_bytes is %" PRIu64 ": %u batches of %" PRIu64
			" bytes and what belongs to them need %" PRIu64,
			l->s.c.memory_bytes, slab_count(l),
			(uint64_t)l->s.c.batch * l->s.sample_bytes, least);
	memory_charge_over(&l->memory, fixed);
	return 0;
}

static int open_dataset(struct refrain_loader *l, struct error *err)
{
	const struct refrain_config *c = &l->s.c;
	struct dataset_options options = {
		.path = c->dataset,
		.source = c->source,
		.root = c->root,
		.record_bytes = c->record_bytes,
		.label_bytes = c->label_bytes,
		.any_file = c->decode != NULL,
		.timeout_ns = c->open_timeout_ms < 0
			? 0
			: (uint64_t)c->open_timeout_ms * NS_PER_MS,
	};
	int rc = dataset_open(&l->dataset, &options, err);

	if (rc == 0)
		l->examples = dataset_count(l->dataset);
	return rc;
}

static void on_free_slab(void *arg)
{
	struct refrain_loader *l = arg;

	loader_tell(l);
	wake_workers(l);
}

static int open_tables(struct refrain_loader *l, struct error *err)
{
	int rc = check_memory(l, err);

	if (rc < 0)
		return rc;
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->event_fd < 0)
		return error_set(err, -errno, "cannot make an eventfd: %m");
	rc = lender_new(&l->lender, &l->s, slab_count(l), on_free_slab, l);
	if (rc == -EINVAL)
		return error_set(err, rc,
			"alloc() returned memory that is not 64-byte aligned");
	if (rc < 0)
		return error_set(err, -ENOMEM,
			"no memory for %u batches of %" PRIu64 " bytes",
			slab_count(l),
			(uint64_t)l->s.c.batch * l->s.sample_bytes);
	l->lock = &l->lender->lock;
	if (entries_init(l, entry_count(l)) < 0 || meter_init(l) < 0)
		return error_set(err, -ENOMEM, "no memory for the pool");
	return 0;
}

/* Threads of a library take no signals. */
static int open_threads(struct refrain_loader *l, struct error *err)
{
	sigset_t all, before;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before); /* cannot fail */
	rc = reader_init(l, err);
	if (rc == 0)
		mount_start(l);
	if (rc == 0)
		rc = workers_start(l, err);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int open_parts(struct refrain_loader *l, struct error *err)
{
	int rc = open_dataset(l, err);

	if (rc == 0)
		rc = planner_init(l, err);
	if (rc == 0)
		rc = echo_init(l, err);
	if (rc == 0)
		rc = open_tables(l, err);
	if (rc == 0)
		rc = workers_init(l, err);
	if (rc < 0)
		return rc;
	mount_new(l);
	l->memory_share = memory_room(&l->memory);
	l->memory_alone = l->memory_share + l->workers_bytes;
	return open_threads(l, err);
}

int refrain_open(
	struct refrain_loader **out, const struct refrain_config *config)
{
	struct error *err = settings_error();
	struct refrain_loader *l;
	int rc;

	*out = NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return error_set(err, -ENOMEM, "no memory for a loader");
	l->pid = getpid();
	l->event_fd = -1;
	memory_init(&l->memory, 0);
	(void)pthread_cond_init(&l->work_c, NULL); /* cannot fail on Linux */
	(void)pthread_cond_init(&l->memory_c, NULL);
	cond_init(&l->next_c);
	rc = settings_init(&l->s, config, err);
	if (rc == 0)
		rc = open_parts(l, err);
	if (rc < 0) {
		(void)refrain_close(l); /* nothing can hang yet */
		return rc;
	}
	l->s.c.dataset = l->s.c.root = NULL; /* were the caller's */
	l->s.c.cpus = NULL;
	l->s.c.state = NULL;
	l->s.c.echo_log = NULL;
	*out = l;
	return 0;
}

/* -- Closing --------------------------------------------------------------- */

static void say_closing(struct refrain_loader *l)
{
	LOCK_SCOPE(l->lock);

	l->closing = true;
	loader_tell(l);
	pthread_cond_broadcast(&l->work_c);
	pthread_cond_broadcast(&l->memory_c);
}

/* Calls that wait return; false if one does not. */
static bool callers_left(struct refrain_loader *l, uint64_t until_ns)
{
	LOCK_SCOPE(l->lock);

	while (l->callers > 0)
		if (!cond_wait_until(&l->next_c, l->lock, until_ns))
			return false;
	return true;
}

/* What a read that hangs does not need. It keeps the lock, too. */
static void abandon(struct refrain_loader *l)
{
	pthread_mutex_lock(l->lock);
	l->lender->lent++;
	pthread_mutex_unlock(l->lock);
	lender_leave(l->lender);
	pthread_mutex_lock(l->lock);
	workers_release(l);
	l->workers = NULL;
	entries_release(l);
	memory_trim(&l->memory);
	pthread_mutex_unlock(l->lock);
}

static void loader_free(struct refrain_loader *l)
{
	reader_release(l);
	mount_free(l);
	workers_release(l);
	entries_release(l);
	planner_release(l);
	echo_release(l);
	meter_release(l);
	memory_trim(&l->memory);
	if (l->lender)
		lender_leave(l->lender);
	if (l->event_fd >= 0)
		(void)close(l->event_fd); /* holds nothing */
	dataset_close(l->dataset);
	pthread_cond_destroy(&l->work_c);
	pthread_cond_destroy(&l->next_c);
	pthread_cond_destroy(&l->memory_c);
	free(l);
}

int refrain_close(struct refrain_loader *l)
{
	uint64_t until_ns = clock_now_ns() + CLOSE_NS;
	uint32_t left;
	bool ended;

	if (!l || l->pid != getpid())
		return 0;
	if (!l->lock) { /* not opened so far */
		loader_free(l);
		return 0;
	}
	say_closing(l);
	left = reader_stop(l, READS_END_NS);
	ended = workers_stop(l, until_ns) && callers_left(l, until_ns);
	ended = mount_stop(l, until_ns) && ended;
	if (ended && !left)
		loader_free(l);
	else if (ended)
		abandon(l);
	return (int)left + (ended ? 0 : 1);
}

/* -- Asking ---------------------------------------------------------------- */

int refrain_fd(struct refrain_loader *l)
{
	return l->pid == getpid() ? l->event_fd : -ECHILD;
}

uint64_t refrain_examples(struct refrain_loader *l)
{
	return l->examples;
}

uint64_t refrain_classes(struct refrain_loader *l)
{
	return dataset_classes(l->dataset);
}

uint64_t refrain_steps_left(struct refrain_loader *l)
{
	if (l->pid != getpid())
		return 0;
	LOCK_SCOPE(l->lock);
	return l->planner.steps - l->returned;
}

uint64_t refrain_step(struct refrain_loader *l)
{
	if (l->pid != getpid())
		return 0;
	LOCK_SCOPE(l->lock);
	return l->returned;
}

uint64_t refrain_epoch_end(struct refrain_loader *l, uint64_t epoch)
{
	if (l->pid != getpid())
		return 0;
	LOCK_SCOPE(l->lock);
	return schedule_epoch_end_all(&l->planner.schedule, epoch);
}

int refrain_failure_get(struct refrain_loader *l, struct refrain_failure *out)
{
	size_t room = out->size < sizeof(*out) ? out->size : sizeof(*out);

	if (l->pid != getpid())
		return -ECHILD;
	LOCK_SCOPE(l->lock);
	l->failure.size = room;
	memcpy(out, &l->failure, room);
	return l->failure.error != 0;
}

const char *refrain_class_name(
	struct refrain_loader *l, int64_t label, size_t *bytes)
{
	if (label < 0 || (uint64_t)label >= dataset_classes(l->dataset))
		return NULL;
	return dataset_class_name(l->dataset, (uint64_t)label, bytes);
}

const char *refrain_path(struct refrain_loader *l, uint64_t index)
{
	struct example example;

	if (index >= l->examples)
		return NULL;
	dataset_example(l->dataset, index, &example);
	return example.name;
}

const char *refrain_message(struct refrain_loader *l)
{
	if (!l)
		return settings_error()->msg;
	if (l->pid != getpid())
		return "the loader belongs to the process that was forked: "
		       "open another one";
	LOCK_SCOPE(l->lock);
	message_copy = l->message.msg[0] ? l->message : l->damage;
	return message_copy.msg;
}

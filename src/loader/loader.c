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
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "loader/loader_impl.h"
#include "mount_help/mount_help.h"

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
	if (least > l->s.c.memory_bytes && l->s.memory_of)
		return error_set(err, -ENOMEM,
			"memory_bytes is not set, and a quarter of %s is "
			"%" PRIu64 ": %u batches of %" PRIu64
			" bytes and what belongs to them need %" PRIu64,
			l->s.memory_of, l->s.c.memory_bytes, slab_count(l),
			(uint64_t)l->s.c.batch * l->s.sample_bytes, least);
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

/* -- Turns ----------------------------------------------------------------- */

static void begin_turn(void *arg)
{
	meter_tick(arg);
}

/*
 * All that can go on because of what was done under the lock: reads are
 * started, and whoever has something to do now is woken. There is no other
 * place for that.
 */
static void *end_turn(void *arg)
{
	struct refrain_loader *l = arg;
	struct read_op *reads;
	bool ready;

	reader_pump(l);
	reads = reader_take_queued(l);
	l->reader.beginning += reads != NULL;
	if (l->alone)
		turn_mark(&l->turn, TURN_ALONE);
	else
		turn_mark_workers(
			&l->turn, (uint64_t)l->ready + planner_wants(l));
	if (help_take_stirred(l->help))
		turn_mark(&l->turn, TURN_HELP);
	ready = loader_is_ready(l);
	turn_ready(&l->turn, ready);
	if (ready)
		turn_mark(&l->turn, TURN_CALLERS);
	return reads;
}

static void start_reads(void *arg, void *chosen)
{
	struct refrain_loader *l = arg;

	reader_begin(chosen);
	if (--l->reader.beginning > 0 || !l->ending)
		return;
	turn_lock(&l->turn);
	turn_mark(&l->turn, TURN_CLOSER);
	turn_unlock(&l->turn);
}

static const struct turn_ops turns = {begin_turn, end_turn, start_reads};

static void on_free_slab(void *arg)
{
	struct refrain_loader *l = arg;

	turn_lock(&l->turn);
	turn_unlock(&l->turn);
}

static int open_tables(struct refrain_loader *l, struct error *err)
{
	int rc = check_memory(l, err);

	if (rc < 0)
		return rc;
	rc = turn_init(&l->turn, &turns, l);
	l->turns = true;
	if (rc < 0)
		return error_set(err, rc, "cannot make an eventfd: %m");
	rc = lender_new(&l->lender, &l->s, slab_count(l), on_free_slab, l);
	if (rc == -EINVAL)
		return error_set(err, rc,
			"alloc() returned memory that is not 64-byte aligned");
	if (rc < 0)
		return error_set(err, -ENOMEM,
			"no memory for %u batches of %" PRIu64 " bytes",
			slab_count(l),
			(uint64_t)l->s.c.batch * l->s.sample_bytes);
	if (entries_init(l, entry_count(l)) < 0 || meter_init(l) < 0)
		return error_set(err, -ENOMEM, "no memory for the pool");
	return 0;
}

/* What a mount may know, as of a turn. */
static void say_run(void *arg, struct help_run *out)
{
	struct refrain_loader *l = arg;
	const struct sums *then = &l->meter.older, *now = &l->meter.now;
	uint64_t steps = now->steps - then->steps;

	*out = (struct help_run){
		.fresh = l->meter.out.fresh,
		.step = l->returned,
		.read_fresh = l->planner.read_fresh,
		.step_ns = steps ? (now->trainer_ns - then->trainer_ns) / steps
				 : 0,
		.schedule = &l->planner.schedule,
		.closing = l->closing,
	};
}

static void open_help(struct refrain_loader *l)
{
	struct help_config config = {
		.s = &l->s,
		.dataset = l->dataset,
		.turn = &l->turn,
		.run = say_run,
		.arg = l,
		.first_fresh = l->planner.planned_fresh,
		.room_bytes = memory_room(&l->memory),
	};

	l->help = help_new(&config);
	memory_charge_over(&l->memory, help_memory_bytes(l->help));
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
		help_start(l->help, l->reader.ring, l->reader.depth);
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
	open_help(l);
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
	memory_init(&l->memory, 0);
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
	turn_lock(&l->turn);
	l->closing = l->ending = true;
	for (int who = 0; who < TURN_WHO; who++)
		turn_mark(&l->turn, who);
	turn_mark_workers(&l->turn, UINT32_MAX);
	turn_unlock(&l->turn);
}

/* Calls that wait return; false if one does not. */
static bool callers_left(struct refrain_loader *l, uint64_t until_ns)
{
	LOCK_SCOPE(&l->turn.lock);

	while (l->callers > 0)
		if (!turn_wait_until(&l->turn, TURN_CLOSER, until_ns))
			return false;
	return true;
}

/* What a read that hangs does not need. */
static void abandon(struct refrain_loader *l)
{
	lender_leave(l->lender);
	LOCK_SCOPE(&l->turn.lock);
	workers_release(l);
	l->workers = NULL;
	entries_release(l);
	memory_trim(&l->memory);
}

static void loader_free(struct refrain_loader *l)
{
	reader_release(l);
	help_free(l->help);
	workers_release(l);
	entries_release(l);
	planner_release(l);
	echo_release(l);
	meter_release(l);
	memory_trim(&l->memory);
	if (l->lender)
		lender_leave(l->lender);
	dataset_close(l->dataset);
	if (l->turns)
		turn_release(&l->turn);
	free(l);
}

int refrain_close(struct refrain_loader *l)
{
	uint64_t until_ns = clock_now_ns() + CLOSE_NS;
	uint32_t left;
	bool ended;

	if (!l || l->pid != getpid())
		return 0;
	if (!l->lender) { /* not opened so far */
		loader_free(l);
		return 0;
	}
	say_closing(l);
	left = reader_stop(l, READS_END_NS);
	ended = workers_stop(l, until_ns) && callers_left(l, until_ns);
	ended = help_stop(l->help, until_ns) && ended;
	if (ended && !left)
		loader_free(l);
	else if (ended)
		abandon(l);
	return (int)left + (ended ? 0 : 1);
}

/* -- Asking ---------------------------------------------------------------- */

int refrain_fd(struct refrain_loader *l)
{
	return l->pid == getpid() ? l->turn.event_fd : -ECHILD;
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
	LOCK_SCOPE(&l->turn.lock);
	return l->planner.steps - l->returned;
}

uint64_t refrain_step(struct refrain_loader *l)
{
	if (l->pid != getpid())
		return 0;
	LOCK_SCOPE(&l->turn.lock);
	return l->returned;
}

uint64_t refrain_epoch_end(struct refrain_loader *l, uint64_t epoch)
{
	if (l->pid != getpid())
		return 0;
	LOCK_SCOPE(&l->turn.lock);
	return schedule_epoch_end_all(&l->planner.schedule, epoch);
}

int refrain_failure_get(struct refrain_loader *l, struct refrain_failure *out)
{
	size_t room = out->size < sizeof(*out) ? out->size : sizeof(*out);

	if (l->pid != getpid())
		return -ECHILD;
	LOCK_SCOPE(&l->turn.lock);
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
	LOCK_SCOPE(&l->turn.lock);
	message_copy = l->message.msg[0] ? l->message : l->damage;
	return message_copy.msg;
}

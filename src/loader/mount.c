/* SPDX-License-Identifier: MIT */
/*
 * The thread that gets a mount's help, and what the reader asks of it. The
 * thread takes the loader's lock for a few list operations, as all do, and
 * waits for the daemon without it.
 */
#include "loader/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "loader/loader_impl.h"

/* A daemon that takes longer is left alone. */
#define ANSWER_MS 10000
/* Keys are asked for so many examples before they are read. */
#define KEYS_AHEAD 16384u
#define KEYS_FIRST 256u
/* Examples of the plan before they are read, at most. */
#define PLAN_AHEAD_MAX (UINT64_C(1) << 22)
/* Between two reports. */
#define REPORT_NS (20 * NS_PER_MS)
/* How long closing waits for the thread to end by itself. */
#define LAST_WORD_NS (200 * NS_PER_MS)
/* What the lines and their tables take, as a rule. */
#define TALK_BYTES (2 * MOUNT_REQUEST_BYTES)

/* -- What the reader asks -------------------------------------------------- */

bool mount_knows(struct refrain_loader *l, const struct entry *e)
{
	struct mount *m = l->mount;

	if (!m || m->late || m->state == MOUNT_OFF || !e->example.whole)
		return true;
	if (m->gated)
		return false;
	if (m->state == MOUNT_ON &&
		(!m->tiers || e->index != e->slot.index ||
			e->slot.fresh < m->answered))
		return true;
	m->stirred = m->waiting;
	return false;
}

const struct mount_key *mount_key(
	const struct refrain_loader *l, const struct entry *e)
{
	const struct mount *m = l->mount;
	const struct mount_key *k;

	if (!m || !l->reader.direct || !e->example.whole)
		return NULL;
	k = &m->keys[e->index % m->keys_count];
	return k->index_1 == e->index + 1 && k->bytes ? k : NULL;
}

/* -- What is to be done ---------------------------------------------------- */

enum work {
	WORK_NONE,
	WORK_KEYS,
	WORK_BEGIN,
	WORK_PLAN,
	WORK_REPORT,
	WORK_TELL,
	WORK_END
};

static uint64_t fresh_returned(const struct mount *m)
{
	return m->first_fresh + m->l->meter.out.fresh;
}

static bool keys_due(const struct mount *m)
{
	return m->tiers && m->answered < UINT64_MAX &&
		m->answered < m->l->planner.read_fresh + KEYS_AHEAD;
}

/* This epoch and the next one, or less of large ones. */
static uint64_t plan_ahead(const struct mount *m)
{
	uint64_t read = mount_slack(m->l);

	if (m->epoch_fresh >= PLAN_AHEAD_MAX / 2)
		return PLAN_AHEAD_MAX;
	/* In any case what is read before it is returned. */
	return 2 * m->epoch_fresh > read ? 2 * m->epoch_fresh : read;
}

static uint64_t plan_end(const struct mount *m)
{
	return fresh_returned(m) + plan_ahead(m);
}

/*
 * What is in the tiers stays there: after an epoch without a miss, and before
 * the first one, there is nothing to be fetched.
 */
static bool plan_wanted(const struct mount *m)
{
	return m->planning && m->in_row < m->epoch_fresh;
}

static enum work plan_due(const struct mount *m)
{
	uint64_t piece = plan_ahead(m) / 4;

	if (!plan_wanted(m))
		return WORK_NONE;
	if (!m->begun)
		return WORK_BEGIN;
	if (piece > MOUNT_NAMES_MAX)
		piece = MOUNT_NAMES_MAX;
	piece += !piece;
	return !m->plan.full && m->plan.added + piece <= plan_end(m)
		? WORK_PLAN
		: WORK_NONE;
}

static bool report_due(const struct mount *m)
{
	return m->begun && m->plan.reported < m->plan.added &&
		fresh_returned(m) > m->plan.reported &&
		clock_now_ns() >= m->due_ns;
}

static enum work work_due(const struct mount *m)
{
	enum work plan = plan_due(m);
	bool keys = keys_due(m);

	if (m->l->closing)
		return WORK_END;
	if (plan != WORK_NONE && (m->plan_turn || !keys))
		return plan;
	if (keys)
		return WORK_KEYS;
	if (report_due(m))
		return WORK_REPORT;
	return mount_tell_due(m) ? WORK_TELL : WORK_NONE;
}

/* What is known of the run when it is done. */
struct now {
	uint64_t answered, plan_end;
	struct mount_report report;
};

/* What the trainer takes for a step, waiting not counted; 0: not known. */
static uint64_t step_ns(const struct refrain_loader *l)
{
	const struct sums *then = &l->meter.older, *now = &l->meter.now;

	return now->steps > then->steps ? (now->trainer_ns - then->trainer_ns) /
			(now->steps - then->steps)
					: 0;
}

/* Reads go on: the mount has the beginning of the plan, or takes none. */
static void open_gate(struct mount *m)
{
	bool planned = m->begun &&
		(m->plan.full || m->plan.added >= m->l->planner.read_fresh);

	if (!m->gated || (plan_wanted(m) && !planned))
		return;
	m->gated = false;
}

/* How many fresh examples that were not returned may be being read. */
static uint64_t reads_begun(const struct mount *m)
{
	uint64_t returned = fresh_returned(m);

	return m->read_end > returned ? m->read_end - returned : 0;
}

static enum work wait_for_work(struct mount *m, struct now *now)
{
	struct refrain_loader *l = m->l;
	enum work work;

	turn_lock(&l->turn);
	/* All of it is over. */
	if (!plan_wanted(m) && m->plan.reported >= m->plan.added)
		m->begun = m->planned = false;
	open_gate(m);
	while ((work = work_due(m)) == WORK_NONE) {
		m->waiting = true;
		turn_wait(&l->turn, TURN_HELP);
		m->waiting = false;
	}
	*now = (struct now){m->answered, plan_end(m),
		{fresh_returned(m), l->returned, reads_begun(m), step_ns(l),
			{0, 0}}};
	m->schedule = l->planner.schedule;
	m->plan_turn = work == WORK_KEYS;
	if (work == WORK_REPORT)
		m->due_ns = clock_now_ns() + REPORT_NS;
	if (work == WORK_REPORT || work == WORK_TELL || work == WORK_END)
		now->report.untold = mount_untold(m);
	turn_unlock(&l->turn);
	return work;
}

void mount_moved(struct refrain_loader *l)
{
	struct mount *m = l->mount;

	if (m && m->waiting && !m->stirred)
		m->stirred = work_due(m) != WORK_NONE;
}

bool mount_take_stirred(struct refrain_loader *l)
{
	bool stirred = l->mount && l->mount->stirred;

	if (stirred)
		l->mount->stirred = false;
	return stirred;
}

void mount_note_start(struct refrain_loader *l, const struct entry *e)
{
	struct mount *m = l->mount;

	if (m && e->slot.fresh >= m->read_end)
		m->read_end = e->slot.fresh + 1;
}

/*
 * The first read that misses makes a plan. What is read before the mount has
 * it would have no position, or take that of a later epoch: so no more is.
 */
void mount_note_read(struct refrain_loader *l, size_t direct_bytes)
{
	struct mount *m = l->mount;

	if (!m)
		return;
	m->in_row = direct_bytes ? m->in_row + 1 : 0;
	m->direct.items += direct_bytes > 0;
	m->direct.bytes += direct_bytes;
	if (direct_bytes)
		return;
	m->gated |= m->state == MOUNT_ON && plan_wanted(m) && !m->begun;
	mount_moved(l);
}

/* -- Doing it -------------------------------------------------------------- */

static void set_late(struct mount *m, bool late)
{
	turn_lock(&m->l->turn);
	m->late = late;
	turn_unlock(&m->l->turn);
}

int mount_ask(
	struct mount *m, size_t bytes, const char **line, size_t *line_bytes)
{
	int rc = talk_send(&m->talk, m->request, bytes);

	if (rc == 0)
		rc = talk_wait(&m->talk, MOUNT_LATE_MS, line, line_bytes);
	if (rc != -ETIMEDOUT)
		return rc;
	set_late(m, true);
	rc = talk_wait(&m->talk, ANSWER_MS, line, line_bytes);
	set_late(m, false);
	return rc;
}

static void keep_key(
	struct mount *m, uint64_t index, const struct answer_key *answer)
{
	struct mount_key *key = &m->keys[index % m->keys_count];

	m->known += !key->index_1;
	*key = (struct mount_key){
		.key = answer->key,
		.bytes = answer->bytes,
		.index_1 = (uint32_t)(index + 1),
	};
}

static int get_keys(struct mount *m, uint64_t from)
{
	struct refrain_loader *l = m->l;
	uint32_t count, most = MOUNT_NAMES_MAX;
	uint64_t next;
	int rc;

	if (from == m->first_fresh)
		most = KEYS_FIRST;
	rc = mount_keys_ask(m, from, most, &count, &next);
	if (rc < 0)
		return rc;
	turn_lock(&l->turn);
	/* The others may have one when they are read again. */
	for (uint32_t i = 0; i < count; i++)
		if (m->answers[i].bytes)
			keep_key(m, m->asked[i], &m->answers[i]);
	m->answered = m->known < l->examples ? next : UINT64_MAX;
	turn_unlock(&l->turn);
	return 0;
}

static void serve(struct mount *m)
{
	struct now now;
	int rc = 0;

	while (rc >= 0) {
		switch (wait_for_work(m, &now)) {
		case WORK_KEYS:
			rc = get_keys(m, now.answered);
			break;
		case WORK_BEGIN:
			rc = mount_plan_begin(m, &now.report);
			break;
		case WORK_PLAN:
			rc = mount_plan_add(m, now.plan_end);
			break;
		case WORK_REPORT:
			rc = mount_plan_report(m, &now.report);
			break;
		case WORK_TELL:
			rc = mount_tell(m, &now.report.untold);
			break;
		case WORK_END:
			mount_tell_last(m, &now.report.untold);
			return;
		case WORK_NONE:
			return;
		}
	}
}

/* -- The thread ------------------------------------------------------------ */

/* Closing shuts the socket down from now on. */
static int say_socket(struct mount *m)
{
	LOCK_SCOPE(&m->l->turn.lock);

	m->socket = m->talk.fd;
	m->schedule = m->l->planner.schedule;
	return m->l->closing ? -ECANCELED : 0;
}

static int meet(struct mount *m)
{
	char path[PATH_MAX];
	int rc = mount_find(
		dataset_dir(m->l->dataset), path, &m->owner, m->below);

	if (rc == 0)
		rc = talk_open(&m->talk, path, m->owner);
	return rc < 0 ? rc : say_socket(m);
}

/* Tiers that are closed to us are passed over: others may hold entries, too. */
static int open_tiers(struct mount *m)
{
	static const char request[] = "{\"cmd\":\"status\"}\n";
	CLEANUP_FREE char(*dirs)[PATH_MAX] =
		calloc(ANSWER_TIERS_MAX, sizeof(*dirs));
	const char *line;
	size_t n;
	int rc;

	if (!dirs)
		return -ENOMEM;
	memcpy(m->request, request, sizeof(request) - 1);
	rc = mount_ask(m, sizeof(request) - 1, &line, &n);
	if (rc == 0)
		rc = answer_tiers(line, n, dirs);
	for (int i = 0; i < rc; i++) {
		int fd = mount_open_tier(dirs[i], m->owner);

		if (fd >= 0)
			m->tier_fds[m->tiers++] = fd;
	}
	return rc < 0 ? rc : 0;
}

/* The threads that wait for the mount do for the tiers, where there is no
 * io_uring. */
static struct uring *make_ring(struct mount *m)
{
	struct uring *ring;

	if (!m->tiers || uring_new(&ring, m->l->reader.depth, 1) < 0)
		return NULL;
	if (!uring_pool(ring))
		return ring;
	(void)uring_free(ring, NS_PER_S); /* has done nothing */
	return m->l->reader.ring;
}

static void close_tiers(struct mount *m)
{
	while (m->tiers > 0)
		(void)close(m->tier_fds[--m->tiers]); /* only looked through */
}

/* False: closing has begun. */
static bool say_on(struct mount *m, struct uring *ring)
{
	struct refrain_loader *l = m->l;
	bool on;

	turn_lock(&l->turn);
	on = !l->closing;
	if (on) {
		l->reader.direct = ring;
		m->state = MOUNT_ON;
	}
	turn_unlock(&l->turn);
	return on;
}

static int go_on(struct mount *m)
{
	struct uring *ring = make_ring(m);

	if (!ring)
		close_tiers(m);
	if (say_on(m, ring))
		return 0;
	if (ring && ring != m->l->reader.ring)
		(void)uring_free(ring, NS_PER_S); /* has done nothing */
	return -ECANCELED;
}

static void end(struct mount *m)
{
	struct refrain_loader *l = m->l;

	turn_lock(&l->turn);
	m->socket = -1;
	m->state = MOUNT_OFF;
	turn_unlock(&l->turn);
	talk_close(&m->talk);
	turn_lock(&l->turn);
	m->ended = true;
	turn_mark(&l->turn, TURN_CLOSER);
	turn_unlock(&l->turn);
}

static void *mount_thread(void *arg)
{
	struct mount *m = arg;
	int rc = meet(m);

	if (rc == 0)
		rc = open_tiers(m);
	if (rc == 0)
		rc = go_on(m);
	if (rc == 0)
		serve(m);
	end(m);
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

static bool may_help(const struct refrain_loader *l)
{
	struct example first;

	if (l->s.c.flags & REFRAIN_FLAG_NO_MOUNT_HELP ||
		dataset_shards(l->dataset) || l->examples >= UINT32_MAX ||
		dataset_fs_type(l->dataset) != FUSE_SUPER_MAGIC)
		return false;
	dataset_example(l->dataset, 0, &first);
	return first.whole;
}

/* As many keys as an eighth of the memory has room for. */
static int new_tables(struct mount *m)
{
	struct refrain_loader *l = m->l;
	uint64_t room = memory_room(&l->memory) / 8;

	if (room < TALK_BYTES + KEYS_FIRST * sizeof(*m->keys))
		return -ENOMEM;
	m->keys_count = (room - TALK_BYTES) / sizeof(*m->keys);
	if (m->keys_count > l->examples)
		m->keys_count = l->examples;
	m->keys = calloc(m->keys_count, sizeof(*m->keys));
	m->request = malloc(MOUNT_REQUEST_BYTES);
	m->asked = calloc(MOUNT_NAMES_MAX, sizeof(*m->asked));
	m->answers = calloc(MOUNT_NAMES_MAX, sizeof(*m->answers));
	if (!m->keys || !m->request || !m->asked || !m->answers)
		return -ENOMEM;
	m->charged = TALK_BYTES + m->keys_count * sizeof(*m->keys);
	memory_charge_over(&l->memory, m->charged);
	return 0;
}

void mount_new(struct refrain_loader *l)
{
	uint32_t world = l->s.c.world;
	struct mount *m;

	if (!may_help(l))
		return;
	m = calloc(1, sizeof(*m));
	if (!m)
		return;
	m->l = l;
	m->first_fresh = m->answered = l->planner.planned_fresh;
	m->epoch_fresh = (l->examples + world - 1) / world;
	m->in_row = m->epoch_fresh;
	m->planning = true;
	m->talk.fd = m->socket = -1;
	l->mount = m;
	if (new_tables(m) < 0)
		mount_free(l);
}

void mount_start(struct refrain_loader *l)
{
	struct mount *m = l->mount;

	if (!m)
		return;
	m->state = MOUNT_STARTING;
	m->started = pthread_create(&m->thread, NULL, mount_thread, m) == 0;
	if (!m->started)
		m->state = MOUNT_OFF;
}

static void wait_for_end(struct mount *m, uint64_t until_ns)
{
	while (!m->ended)
		if (!turn_wait_until(&m->l->turn, TURN_CLOSER, until_ns))
			break;
}

/* A daemon that answers lets the thread say its last; else it is cut short. */
bool mount_stop(struct refrain_loader *l, uint64_t until_ns)
{
	uint64_t soon_ns = clock_now_ns() + LAST_WORD_NS;
	struct mount *m = l->mount;
	bool ended;

	if (!m || !m->started)
		return true;
	turn_lock(&l->turn);
	turn_mark(&l->turn, TURN_HELP);
	wait_for_end(m, soon_ns < until_ns ? soon_ns : until_ns);
	if (m->socket >= 0)
		(void)shutdown(m->socket, SHUT_RDWR); /* or it is already */
	wait_for_end(m, until_ns);
	ended = m->ended;
	turn_unlock(&l->turn);
	if (ended)
		pthread_join(m->thread, NULL);
	else
		pthread_detach(m->thread);
	return ended;
}

void mount_free(struct refrain_loader *l)
{
	struct mount *m = l->mount;

	if (!m)
		return;
	close_tiers(m);
	memory_uncharge(&l->memory, m->charged);
	free(m->keys);
	free(m->request);
	free(m->asked);
	free(m->answers);
	free(m);
	l->mount = NULL;
}

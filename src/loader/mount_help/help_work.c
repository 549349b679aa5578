/* SPDX-License-Identifier: MIT */
/*
 * Chooses the thread's next task (a request for keys, a plan, a report) from
 * the progress of the run. The reader also calls functions here, to ask about
 * keys and to note reads. Called with the loader's lock; the thread of help.c
 * sleeps here.
 */
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "loader/mount_help/help_impl.h"

/* Keys are requested for this many examples ahead of reads. */
#define KEYS_AHEAD 16384u
/* The plan has at most this many examples ahead of reads. */
#define PLAN_AHEAD_MAX (UINT64_C(1) << 22)
/* The time between two progress reports. */
#define REPORT_NS (20 * NS_PER_MS)

/* If the thread sleeps, mark it to be woken at the end of the turn. */
static void stir(struct mount_help *m)
{
	if (m->thread_state == THREAD_SLEEPS)
		m->thread_state = THREAD_STIRRED;
}

/* -- Calls of the reader --------------------------------------------------- */

bool help_knows(struct mount_help *m, uint64_t fresh, bool own)
{
	if (!m || m->late || m->state == HELP_OFF || m->state == HELP_AWAY)
		return true;
	ASSERT_HELP(m);
	if (m->gated)
		return false;
	if (m->state == HELP_ON && (!m->tiers || !own || fresh < m->answered))
		return true;
	stir(m);
	return false;
}

const struct help_key *help_key(
	const struct mount_help *m, uint64_t index, uint32_t part)
{
	const struct help_key *k;
	uint64_t file;

	if (!m || !m->ring)
		return NULL;
	ASSERT_HELP(m);
	file = index * m->parts + part;
	k = &m->keys[file % m->keys_count];
	return k->file_1 == file + 1 && k->bytes ? k : NULL;
}

struct uring *help_ring(const struct mount_help *m)
{
	if (!m)
		return NULL;
	ASSERT_HELP(m);
	return m->ring;
}

int help_tier(const struct mount_help *m, unsigned n)
{
	return n < m->tiers ? m->tier_fds[n] : -1;
}

/* -- The next task --------------------------------------------------------- */

struct help_run help_look(const struct mount_help *m)
{
	struct help_run run;

	ASSERT_HELP(m);
	m->c.run(m->c.arg, &run);
	return run;
}

/* Returns the fresh number below which all examples were returned. */
static uint64_t fresh_returned(
	const struct mount_help *m, const struct help_run *run)
{
	return m->c.first_fresh + run->fresh;
}

static bool keys_due(const struct mount_help *m, const struct help_run *run)
{
	return m->tiers && m->answered < UINT64_MAX &&
		m->answered < run->read_fresh + KEYS_AHEAD;
}

/* Returns the number of examples to plan: those of this pass and the next one,
 * or fewer if passes are large. */
static uint64_t plan_span(const struct mount_help *m)
{
	uint64_t read = help_slack(m);

	if (m->pass_fresh >= PLAN_AHEAD_MAX / 2)
		return PLAN_AHEAD_MAX;
	/* Plan at least as many examples as may be read before they are
	 * returned. */
	return 2 * m->pass_fresh > read ? 2 * m->pass_fresh : read;
}

static uint64_t plan_end(const struct mount_help *m, const struct help_run *run)
{
	return fresh_returned(m, run) + plan_span(m);
}

/* Is a plan needed? With a service, this host does not read most files of its
 * schedule. Entries stay in the tiers, so after a whole pass without a
 * miss there is nothing to fetch. The counter of hits begins as if there had
 * been such a pass. */
static bool plan_wanted(const struct mount_help *m)
{
	return m->plan_state != PLAN_REFUSED && !m->no_plan &&
		m->in_row < m->pass_fresh * m->parts;
}

static enum help_work plan_due(
	const struct mount_help *m, const struct help_run *run)
{
	uint64_t group = plan_span(m) / 4;

	if (!plan_wanted(m))
		return WORK_NONE;
	if (!help_plan_begun(m))
		return WORK_BEGIN;
	if (group > HELP_NAMES_MAX / m->parts)
		group = HELP_NAMES_MAX / m->parts;
	group += !group;
	return !m->plan.full && m->plan.added + group <= plan_end(m, run)
		? WORK_PLAN
		: WORK_NONE;
}

static bool report_due(const struct mount_help *m, const struct help_run *run)
{
	return help_plan_begun(m) && m->plan.reported < m->plan.added &&
		fresh_returned(m, run) > m->plan.reported &&
		clock_now_ns() >= m->due_ns;
}

/* Must direct hits be reported now? This does not depend on a plan. */
static bool tell_due(const struct mount_help *m)
{
	return m->direct.items > m->told.items &&
		clock_now_ns() >= m->tell_due_ns;
}

static enum help_work work_due(
	const struct mount_help *m, const struct help_run *run)
{
	enum help_work plan = plan_due(m, run);
	bool keys = keys_due(m, run);

	if (run->closing)
		return WORK_END;
	if (plan != WORK_NONE && (m->last == WORK_KEYS || !keys))
		return plan;
	if (keys)
		return WORK_KEYS;
	if (report_due(m, run))
		return WORK_REPORT;
	return tell_due(m) ? WORK_TELL : WORK_NONE;
}

/* Open the gate for reads if the mount has the beginning of the plan, or if no
 * plan is needed. */
static void open_gate(struct mount_help *m, const struct help_run *run)
{
	bool planned = help_plan_begun(m) &&
		(m->plan.full || m->plan.added >= run->read_fresh);

	if (!m->gated || (plan_wanted(m) && !planned))
		return;
	m->gated = false;
}

/* Returns how many of the examples that were not returned yet may have reads
 * that have begun. */
static uint64_t reads_begun(
	const struct mount_help *m, const struct help_run *run)
{
	uint64_t returned = fresh_returned(m, run);

	return m->read_end > returned ? m->read_end - returned : 0;
}

static enum help_work look_at_run(struct mount_help *m, struct help_run *run)
{
	*run = help_look(m);
	return work_due(m, run);
}

static enum help_work sleep_until_due(
	struct mount_help *m, struct help_run *run)
{
	uint64_t until_ns = clock_now_ns() + HELP_LOOK_NS;
	enum help_work work;
	bool early = true;

	*run = help_look(m);
	/* The plan is no longer needed, and all its files were read. */
	if (help_plan_begun(m) && !plan_wanted(m) &&
		m->plan.reported >= m->plan.added)
		m->plan_state = PLAN_NONE;
	open_gate(m, run);
	while ((work = look_at_run(m, run)) == WORK_NONE && early) {
		m->thread_state = THREAD_SLEEPS;
		early = turn_wait_until(m->c.turn, TURN_HELP, until_ns);
		m->thread_state = THREAD_WORKS;
	}
	return work;
}

enum help_work help_wait_for_work(struct mount_help *m, struct help_now *now)
{
	struct help_run run;
	enum help_work work;

	turn_lock(m->c.turn);
	work = sleep_until_due(m, &run);
	*now = (struct help_now){m->answered, plan_end(m, &run),
		{fresh_returned(m, &run), run.step, reads_begun(m, &run),
			run.step_ns, {0, 0}}};
	m->schedule = *run.schedule;
	m->last = work;
	if (work == WORK_REPORT)
		m->due_ns = clock_now_ns() + REPORT_NS;
	if (work == WORK_REPORT || work == WORK_TELL || work == WORK_END)
		now->report.untold = help_untold(m);
	turn_unlock(m->c.turn);
	return work;
}

void help_moved(struct mount_help *m)
{
	struct help_run run;

	if (!m)
		return;
	ASSERT_HELP(m);
	if (m->thread_state == THREAD_SLEEPS &&
		look_at_run(m, &run) != WORK_NONE)
		stir(m);
}

bool help_take_stirred(struct mount_help *m)
{
	if (!m)
		return false;
	ASSERT_HELP(m);
	if (m->thread_state != THREAD_STIRRED)
		return false;
	m->thread_state = THREAD_SLEEPS;
	return true;
}

void help_note_start(struct mount_help *m, uint64_t fresh)
{
	if (!m)
		return;
	ASSERT_HELP(m);
	if (fresh >= m->read_end)
		m->read_end = fresh + 1;
}

/*
 * Note a read. The first miss starts a plan, and closes the gate for reads
 * until the mount has the beginning of the plan. Otherwise a read would have no
 * position in the plan, or would take the position of the same file in a later
 * epoch.
 */
void help_note_read(struct mount_help *m, size_t direct_bytes)
{
	if (!m)
		return;
	ASSERT_HELP(m);
	m->in_row = direct_bytes ? m->in_row + 1 : 0;
	m->direct.items += direct_bytes > 0;
	m->direct.bytes += direct_bytes;
	if (direct_bytes)
		return;
	m->gated |=
		m->state == HELP_ON && plan_wanted(m) && !help_plan_begun(m);
	help_moved(m);
}

/* SPDX-License-Identifier: MIT */
/* The meter of an echo stage; see stage_meter_impl.h. Called by the thread that
 * uses the stage. */
#include "loader/api/stage_meter_impl.h"

#include "common/base/clock.h"

/* A pull that takes longer than SLOW_FACTOR times the fastest pull plus SLOW_NS
 * counts as slow: it has waited for the source. */
#define SLOW_FACTOR 2
#define SLOW_NS (100 * NS_PER_US)
/* The fastest pull is the minimum of at least this many pulls. */
#define FASTEST_OF 64
/* Numbers of pulls in a probe. PROBE_MOST: the maximum in all, unless 3/8 of a
 * window is less. PROBE_COUNT: pulls that are counted. PROBE_LEAST: the minimum
 * of counted pulls if they confirm the factor. */
#define PROBE_MOST 384
#define PROBE_COUNT 32
#define PROBE_LEAST 8
/* Counted pulls confirm the factor if the R that they give is at least this
 * share of it. */
#define CONFIRMS 0.9
/* The trainer has to wait if slow pulls take more than this share of its
 * time. */
#define WAITING 0.01
/* The trainer also has to wait if one pull takes more than this share of the
 * trainer's time for a serving. */
#define LONG 0.5
/* If the trainer does not have to wait, the next probe comes after this many
 * parts of a window. */
#define PROBE_PARTS 3
/* The source works in the background if an example takes this many times longer
 * in a probe than outside of probes. */
#define OVERLAPS 1.2

void stage_meter_init(struct stage_meter *m)
{
	*m = (struct stage_meter){
		.fastest_ns = {UINT64_MAX, UINT64_MAX},
	};
}

void stage_meter_start(struct stage_meter *m, uint32_t batch, uint64_t spread,
	struct schedule_echo max, struct schedule_echo now)
{
	uint64_t ahead = spread * 3 / 8;

	ahead = ahead < PROBE_MOST ? ahead : PROBE_MOST;
	m->skip_most = ahead > 2 * PROBE_COUNT ? (uint32_t)ahead - PROBE_COUNT
					       : PROBE_COUNT;
	m->measures = true;
	auto_init(&m->echo, batch, 1, spread, max, now);
}

/* -- Time ------------------------------------------------------------------ */

void stage_meter_called(struct stage_meter *m, uint64_t now_ns)
{
	if (m->returned_ns)
		m->sums.trainer_ns += now_ns - m->returned_ns;
	m->returned_ns = 0;
}

void stage_meter_paused(struct stage_meter *m)
{
	m->returned_ns = 0;
}

void stage_meter_pull(struct stage_meter *m, uint64_t now_ns)
{
	m->pull_ns = now_ns;
}

void stage_meter_lend(struct stage_meter *m, uint64_t now_ns)
{
	m->lent_ns = now_ns;
}

void stage_meter_served(struct stage_meter *m, uint64_t now_ns, bool fresh)
{
	m->sums.augment_ns += now_ns - m->lent_ns;
	m->sums.fresh += fresh;
	m->servings++;
	m->returned_ns = now_ns;
}

/* -- Pulls ----------------------------------------------------------------- */

static uint64_t fastest(const struct stage_meter *m)
{
	return m->fastest_ns[0] < m->fastest_ns[1] ? m->fastest_ns[0]
						   : m->fastest_ns[1];
}

static void note_fastest(struct stage_meter *m, uint64_t ns)
{
	if (m->fastest_of++ >= FASTEST_OF) {
		m->fastest_ns[1] = m->fastest_ns[0];
		m->fastest_ns[0] = UINT64_MAX;
		m->fastest_of = 0;
	}
	if (ns < m->fastest_ns[0])
		m->fastest_ns[0] = ns;
}

static double mean_ns(uint64_t ns, uint64_t n)
{
	return n ? (double)ns / (double)n : 0;
}

/* Returns the mean time that the trainer and the augmentation need for all
 * servings of one example, in ns, since the present part began. */
static double example_ns(const struct stage_meter *m)
{
	const struct auto_sums *then = &m->echo.begun, *now = &m->sums;

	return mean_ns(now->trainer_ns - then->trainer_ns + now->augment_ns -
			then->augment_ns,
		now->fresh - then->fresh);
}

/*
 * End the probe. auto.h requires a minimum number of reads, so the result
 * counts as that of so many reads even if there were fewer. If the source has
 * always had an example ready, it may be slower than the probe shows, so auto.h
 * then lowers the factor in two steps.
 */
static void end_probe(struct stage_meter *m)
{
	struct stage_probe *p = &m->probe;
	double ns = mean_ns(p->ns, p->counted), most_ns = example_ns(m);

	m->overlaps = ns > OVERLAPS * mean_ns(m->plain_ns, m->plain);
	m->sums.full_reads += PROBE_COUNT;
	m->sums.full_ns += (uint64_t)(ns * PROBE_COUNT);
	if (!p->drained && most_ns > ns)
		m->sums.bursts += 1 +
			(uint64_t)((most_ns - ns) * PROBE_COUNT /
				(double)SPEED_SAVED_NS);
	m->probed = m->echo.asked;
	m->parts = 0;
	*p = (struct stage_probe){0};
}

static void probe_pulled(struct stage_meter *m, uint64_t ns, bool slow)
{
	struct stage_probe *p = &m->probe;

	if (!p->drained && p->skipped < m->skip_most) {
		p->skipped++;
		p->drained = slow;
		return;
	}
	p->since++;
	p->since_ns += ns;
	/* Examples that come at once are counted together with the pull that
	 * waited before them, so wait for the next slow pull. */
	if (!slow && p->counted + p->since < PROBE_COUNT)
		return;
	p->counted += p->since;
	p->ns += p->since_ns;
	p->since = 0;
	p->since_ns = 0;
	if (p->counted >= PROBE_COUNT ||
		(p->counted >= PROBE_LEAST &&
			mean_ns(p->ns, p->counted) >= CONFIRMS * example_ns(m)))
		end_probe(m);
}

void stage_meter_pulled(struct stage_meter *m, uint64_t now_ns)
{
	uint64_t ns = now_ns - m->pull_ns, least;
	bool slow;

	note_fastest(m, ns);
	least = fastest(m);
	slow = ns > SLOW_FACTOR * least + SLOW_NS;
	m->sums.reads++;
	m->sums.read_ns += ns;
	if (m->probe.on) {
		probe_pulled(m, ns, slow);
		return;
	}
	if (slow)
		m->sums.wait_ns += ns - least;
	m->plain++;
	m->plain_ns += ns;
}

bool stage_meter_probes(const struct stage_meter *m)
{
	const struct stage_probe *p = &m->probe;

	return p->skipped + p->counted + p->since > 0;
}

void stage_meter_ended(struct stage_meter *m)
{
	m->probe = (struct stage_probe){0};
}

/* -- Steps ----------------------------------------------------------------- */

/* Does the trainer have to wait? This is also assumed if even the fastest pull
 * is so long that the source may be slower than the trainer. */
static bool is_waiting(const struct stage_meter *m)
{
	const struct auto_sums *then = &m->echo.begun, *now = &m->sums;
	double trainer_ns = (double)(now->trainer_ns - then->trainer_ns);
	double servings = (double)(now->steps - then->steps) * m->echo.batch;

	return (double)(now->wait_ns - then->wait_ns) > WAITING * trainer_ns ||
		mean_ns(m->plain_ns, m->plain) * servings > LONG * trainer_ns;
}

/* Is it time for a probe? If the trainer has to wait, a probe is needed only to
 * learn whether the source works in the background. */
static bool wants_probe(const struct stage_meter *m)
{
	const struct auto_echo *a = &m->echo;
	uint64_t fresh = m->sums.fresh - a->begun.fresh;
	bool echoes = a->asked.p > a->asked.q;
	bool known = m->probed.p == a->asked.p && m->probed.q == a->asked.q &&
		m->parts < AUTO_PARTS;

	if (m->probe.on || m->sums.full_reads > a->begun.full_reads)
		return false;
	if (is_waiting(m))
		return !known && fresh >= a->part_fresh / 2;
	return echoes && fresh >= PROBE_PARTS * a->part_fresh;
}

/* Returns the sums for auto.h. While the trainer waits, a source that works in
 * the background is busy all the time; a source that works only during pulls is
 * busy during the pulls. */
static struct auto_sums told(const struct stage_meter *m)
{
	const struct auto_sums *then = &m->echo.begun;
	struct auto_sums now = m->sums;
	uint64_t reads = now.reads - then->reads;
	uint64_t ns = now.read_ns - then->read_ns;

	if (!is_waiting(m) || !m->probed.p || now.full_reads > then->full_reads)
		return now;
	if (m->overlaps) {
		ns += now.trainer_ns - then->trainer_ns;
		ns += now.augment_ns - then->augment_ns;
		reads = now.fresh - then->fresh;
	}
	now.full_reads += reads;
	now.full_ns += ns;
	return now;
}

void stage_meter_step(struct stage_meter *m)
{
	struct auto_sums now;

	m->sums.steps++;
	if (!m->measures)
		return;
	now = told(m);
	auto_step(&m->echo, &now);
	/* If a new part begins with this step, the last one has ended here. */
	if (m->echo.begun.steps == now.steps) {
		m->sums.full_reads = now.full_reads;
		m->sums.full_ns = now.full_ns;
		m->plain = m->plain_ns = 0;
		m->parts++;
	}
	if (wants_probe(m))
		m->probe.on = true;
}

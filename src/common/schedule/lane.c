/* SPDX-License-Identifier: MIT */
/*
 * The construction of the echo schedule ("tick lanes"), and its arithmetic.
 * Pure functions of `struct schedule`; any thread.
 *
 * Construction. A *tick* u is the moment when fresh unit u is served. The
 * stream of slots consists of the ticks, one after the other, and a batch is
 * the next `slots_a_step` slots. Let e = p/q, K = ceil(e), and V = `spread`,
 * which is the window less a batch. Each tick has up to K slots, one for each
 * *lane*. In tick u, lane 0 serves unit u. Lane k in 1..K-1 serves, as echo k,
 * a unit that was decoded about D_k = k V / (K-1) ticks ago: it is at its place
 * v = u - D_k, and serves sigma_k(v), where sigma_k is a permutation inside
 * blocks of S places. Unit v gets m(v) = floor((v+1)e) - floor(v e) servings:
 * floor(e) if it is *plain*, one more if it is *extra*. Places with k >= m(v)
 * are left out, and sigma_k maps plain units to plain ones and extra units to
 * extra ones. With gap = floor(V / (K-1)) and LB = lag x slots_a_step,
 *     G = min(LB, max(ceil(LB / e), gap / 2)),    S = max(1, gap - G + 1).
 * When the factor changes, a new *segment* begins at a tick. Units from this
 * tick on have the new lanes. The lanes of the old segment serve the echoes of
 * its units until these have had all servings, V ticks later. In a tick, the
 * slots of the newer segment come first. V is the same for all segments, and
 * they begin at least V apart, so at most two segments are alive.
 *
 * Proofs. [E2] is guarantee E2 of doc/schedule.md, for which a proof is needed.
 * 1. Unit v of a segment has exactly m(v) servings, in order [E2, E4]: lane k
 *    has one slot for each v with k < m(v), and sigma_k is a bijection of these
 *    units. The order follows from 3.
 * 2. At most W units are outstanding [E6]. The last lane that serves a class is
 *    m-1. It finishes one unit of the class at each place of that class. So
 *    before tick a it has finished as many units as there are below
 *    a - D_{m-1} >= a - V. A batch touches at most slots_a_step ticks, because
 *    each tick before the last fresh unit has a slot. V + slots_a_step = W.
 *    Segments have the same V, so this holds for their sum, too.
 * 3. Servings k and k+1 of a unit are at least G ticks apart: both places are
 *    in one block, so they differ by at most S - 1, and gap - (S - 1) = G.
 * 4. If gap >= 2 LB, then G = LB. Every tick has at least one slot until the
 *    first empty tick of the drain. So servings are at least LB slots, which
 *    are `lag` batches, apart, in the ramp and across changes, too [E6].
 *    Empty ticks occur after tick U + D_{K-2} (U: number of units), if e is not
 *    a whole number: then only the last lane has slots left, and only for extra
 *    units. If two servings of a unit come too near, one is before the first
 *    slot of that tick and the other after it, so at most `lag` batches are
 *    affected.
 * 5. In the steady state n ticks have floor(ne) or ceil(ne) slots, so a batch
 *    has floor(B/e) or ceil(B/e) fresh examples [E12].
 * 6. A change does not alter what was served. The m of older units stays. Only
 *    the last block of the old segment is cut, and no lane but 0 has reached
 *    this block, because D_1 >= S (or D_1 = 0 and S = 1).
 * 7. The stream depends only on configuration, changes and position. A slot
 *    takes O(K), and random access works by bisection of slots_before(), which
 *    is a closed form.
 * 8. An open end changes nothing before it: lane k > 0 reaches a block only
 *    after all of its units were fresh, because D_1 >= S. If a factor changed
 *    less than V before the end, ticks may be empty between the lanes of the
 *    last segment, so 4 does not hold there.
 * A run shorter than V has V = (K-1) U instead: no tick is empty before the
 * drain. No change can begin in such a run, so segments still have the same V.
 */
#include "common/schedule/lane_impl.h"

#include <errno.h>

#include "common/base/hash.h"
#include "common/schedule/permute.h"

uint64_t segment_delay(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k)
{
	return k ? k * s->spread / (seg->lanes - 1) : 0;
}

uint64_t segment_gap(
	const struct schedule *s, const struct schedule_segment *seg)
{
	return seg->lanes > 1 ? s->spread / (seg->lanes - 1) : 0;
}

/* Returns the number of units in a block, in which echoes are shuffled: S of
 * the construction. */
static uint64_t block_units(
	const struct schedule *s, const struct schedule_segment *seg)
{
	uint64_t lag = (uint64_t)s->c.lag * s->slots_a_step;
	uint64_t gap = segment_gap(s, seg), apart;

	apart = max_u64(div_up(lag * seg->q, seg->p), gap / 2);
	apart = min_u64(apart, lag);
	return gap > apart ? gap - apart + 1 : 1;
}

void segment_init(const struct schedule *s, struct schedule_segment *seg,
	uint64_t start, uint64_t slot, struct schedule_echo echo)
{
	*seg = (struct schedule_segment){
		.start = start,
		.slot = slot,
		.p = echo.p,
		.q = echo.q,
		.whole = echo.p / echo.q,
		.part = echo.p % echo.q,
		.lanes = (uint32_t)div_up(echo.p, echo.q),
	};
	seg->block = block_units(s, seg);
}

uint64_t segment_extras(const struct schedule_segment *seg, uint64_t v)
{
	if (!seg->part)
		return 0;
	return v / seg->q * seg->part + v % seg->q * seg->part / seg->q;
}

/* Has unit v one serving more than floor(e)? It has if part * v / q passes a
 * whole number between v and v + 1. */
static bool lane_is_extra(const struct schedule_segment *seg, uint64_t v)
{
	return seg->part &&
		(v % seg->q * seg->part) % seg->q + seg->part >= seg->q;
}

uint32_t segment_servings(const struct schedule_segment *seg, uint64_t v)
{
	return seg->whole + lane_is_extra(seg, v);
}

static uint64_t since(uint64_t ticks, uint64_t delay, uint64_t n)
{
	return ticks > delay ? min_u64(ticks - delay, n) : 0;
}

uint64_t segment_slots(const struct schedule *s,
	const struct schedule_segment *seg, uint64_t n, uint64_t ticks)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < seg->whole; k++)
		sum += since(ticks, segment_delay(s, seg, k), n);
	if (seg->part)
		sum += segment_extras(seg,
			since(ticks, segment_delay(s, seg, seg->whole), n));
	return sum;
}

uint64_t segment_units(const struct schedule *s, uint32_t i)
{
	uint64_t end = i + 1 < s->segments ? s->segment[i + 1].start : s->units;

	return end > s->segment[i].start ? end - s->segment[i].start : 0;
}

uint32_t segment_at(const struct schedule *s, uint64_t u)
{
	uint32_t i = s->segments - 1;

	while (i > 0 && s->segment[i].start > u)
		i--;
	return i;
}

/* --- the lanes' permutations --- */

/* The units of one class in a block: those with ranks [first, first + count) in
 * the class. */
struct lane_block {
	bool extra;
	uint64_t first, rank;
	struct permute permute;
};

static uint64_t block_key(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k, uint64_t begin,
	bool extra)
{
	uint64_t words[] = {s->base, (uint64_t)s->c.rank << 32 | k << 1 | extra,
		seg->start, begin};

	return hash64(words, sizeof(words), s->c.seed);
}

/* Find the block that contains unit or place v, and the rank of v in its class
 * in that block. */
static void block_of(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k, uint64_t v,
	struct lane_block *b)
{
	uint64_t n = segment_units(s, (uint32_t)(seg - s->segment));
	uint64_t begin = v - v % seg->block;
	uint64_t end = min_u64(begin + seg->block, n);
	uint64_t x0 = segment_extras(seg, begin);
	uint64_t x1 = segment_extras(seg, end), xv = segment_extras(seg, v);

	b->extra = lane_is_extra(seg, v);
	b->first = b->extra ? x0 : begin - x0;
	b->rank = (b->extra ? xv : v - xv) - b->first;
	permute_init(&b->permute, b->extra ? x1 - x0 : end - begin - (x1 - x0),
		block_key(s, seg, k, begin, b->extra));
}

/* Returns the unit that has this rank in its class in the whole segment. */
static uint64_t unit_of_rank(
	const struct schedule_segment *seg, bool extra, uint64_t rank)
{
	uint64_t q = seg->q, per = extra ? seg->part : q - seg->part;
	/* `whole` units are in complete periods of q; `rest` is the rank in the
	 * next period. */
	uint64_t whole = rank / per * q, rest = rank % per;

	return whole +
		(extra ? div_up((rest + 1) * q, per) - 1 : rest * q / per);
}

uint64_t lane_unit(const struct schedule *s, const struct schedule_segment *seg,
	uint32_t k, uint64_t v)
{
	struct lane_block b;

	if (!k || seg->block == 1)
		return v;
	block_of(s, seg, k, v, &b);
	return unit_of_rank(
		seg, b.extra, b.first + permute_at(&b.permute, b.rank));
}

uint64_t lane_place(const struct schedule *s,
	const struct schedule_segment *seg, uint32_t k, uint64_t v)
{
	struct lane_block b;

	if (!k || seg->block == 1)
		return v;
	block_of(s, seg, k, v, &b);
	return unit_of_rank(
		seg, b.extra, b.first + permute_find(&b.permute, b.rank));
}

/* --- ticks and slots --- */

static uint32_t lane_slots(const struct schedule *s, uint32_t i, uint64_t u,
	struct lane_slot *slots)
{
	const struct schedule_segment *seg = &s->segment[i];
	uint64_t n = segment_units(s, i);
	uint32_t count = 0;

	for (uint32_t k = 0; k < seg->lanes; k++) {
		uint64_t delay = segment_delay(s, seg, k), v;

		if (u - seg->start < delay)
			break;
		v = u - seg->start - delay;
		if (v < n && (k < seg->whole || lane_is_extra(seg, v)))
			slots[count++] = (struct lane_slot){seg, v, k};
	}
	return count;
}

uint32_t tick_slots(const struct schedule *s, uint64_t u,
	struct lane_slot slots[TICK_SLOTS_MAX])
{
	uint32_t i = segment_at(s, u);
	uint32_t count = lane_slots(s, i, u, slots);

	if (i > 0)
		count += lane_slots(s, i - 1, u, slots + count);
	return count;
}

uint64_t ticks_end(const struct schedule *s)
{
	const struct schedule_segment *last = &s->segment[s->segments - 1];
	uint64_t end = s->units + (last->lanes > 1 ? s->spread : 0);

	/* Units of earlier segments have had all servings by then: the last
	 * segment began at least one spread before the end (schedule_change()),
	 * unless the end was open. */
	if (s->segments > 1 && last[-1].lanes > 1)
		end = max_u64(end, last->start + s->spread);
	return end;
}

bool tick_known(const struct schedule *s, uint64_t u)
{
	return !s->forgotten || u >= s->segment[1].start;
}

uint64_t slots_before(const struct schedule *s, uint64_t u)
{
	uint32_t i = segment_at(s, u);
	const struct schedule_segment *seg = &s->segment[i];
	uint64_t x = seg->slot +
		segment_slots(s, seg, segment_units(s, i), u - seg->start);

	if (i > 0) {
		const struct schedule_segment *old = seg - 1;
		uint64_t n = segment_units(s, i - 1);

		x += segment_slots(s, old, n, u - old->start) -
			segment_slots(s, old, n, seg->start - old->start);
	}
	return x;
}

/* Find a range of ticks [lo, hi] that contains slot x. */
static void slot_range(
	const struct schedule *s, uint64_t x, uint64_t *lo, uint64_t *hi)
{
	uint32_t i = s->segments - 1;

	while (i > 0 && s->segment[i].slot > x)
		i--;
	*lo = s->segment[i].start;
	/* an upper limit, because each tick has at least one slot */
	*hi = *lo + (x - s->segment[i].slot);
	if (*hi >= s->units)
		*hi = ticks_end(s);
	if (i + 1 < s->segments)
		*hi = min_u64(*hi, s->segment[i + 1].start - 1);
}

int slot_find(
	const struct schedule *s, uint64_t x, uint64_t *tick, uint32_t *offset)
{
	uint64_t lo, hi, found;

	if (s->forgotten && x < s->segment[1].slot)
		return -ERANGE;
	slot_range(s, x, &lo, &hi);
	/* Find the last tick that has at most x slots before it. */
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo + 1) / 2;

		if (slots_before(s, mid) <= x)
			lo = mid;
		else
			hi = mid - 1;
	}
	found = slots_before(s, lo);
	if (x > found && lo >= ticks_end(s))
		return -ERANGE;
	*tick = lo;
	*offset = (uint32_t)(x - found);
	return 0;
}

uint64_t units_before(const struct schedule *s, uint64_t tick, uint32_t offset)
{
	return min_u64(tick + (offset > 0), s->units);
}

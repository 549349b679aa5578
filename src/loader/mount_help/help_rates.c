/* SPDX-License-Identifier: MIT */
/* Gets from the answers to progress reports how fast the mount fetches for the
 * plan. --echo auto uses these rates as the measured speed of the source.
 * Called by the thread of help.c; the lock guards the sums. */
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "loader/mount_help/help_impl.h"

enum {
	FULL_US,
	FULL_BYTES,
	LONG_US,
	LONG_BYTES,
	BURSTS,
	LOOKED,
	MISSING_BYTES,
	FETCHING,
	VALUES
};

static void add_rates(struct mount_help *m, const struct answer_value *v)
{
	const struct fetch_rates *before = &m->plan.before;
	TURN_LOOK_SCOPE(m->c.turn);

	m->rates = (struct fetch_rates){
		.full_ns = before->full_ns + v[FULL_US].value * NS_PER_US,
		.full_bytes = before->full_bytes + v[FULL_BYTES].value,
		.long_ns = before->long_ns + v[LONG_US].value * NS_PER_US,
		.long_bytes = before->long_bytes + v[LONG_BYTES].value,
		.bursts = before->bursts + v[BURSTS].value,
		.looked = before->looked + v[LOOKED].value / m->parts,
		.missing_bytes = before->missing_bytes + v[MISSING_BYTES].value,
	};
	m->fetching = v[FETCHING].value;
	m->plan_state = PLAN_RATED;
}

int help_take_rates(struct mount_help *m, const char *line, size_t bytes)
{
	struct answer_value v[VALUES] = {
		[FULL_US] = {"full_us", UINT64_MAX},
		[FULL_BYTES] = {"full_bytes", 0},
		[LONG_US] = {"long_us", 0},
		[LONG_BYTES] = {"long_bytes", 0},
		[BURSTS] = {"bursts", 0},
		[LOOKED] = {"looked", 0},
		[MISSING_BYTES] = {"missing_bytes", 0},
		[FETCHING] = {"fetching", 0},
	};
	int rc = answer_values(line, bytes, v, VALUES);

	/* A mount of an older version does not report rates. */
	if (rc == 1 && v[FULL_US].value != UINT64_MAX)
		add_rates(m, v);
	return rc;
}

bool help_plans(const struct mount_help *m)
{
	if (!m)
		return false;
	ASSERT_HELP(m);
	return m->plan_state == PLAN_RATED && m->state == HELP_ON;
}

uint64_t help_returns(const struct mount_help *m)
{
	if (!m)
		return 0;
	ASSERT_HELP(m);
	return m->returns;
}

void help_rates_get(
	const struct mount_help *m, struct fetch_rates *out, bool *fetching)
{
	ASSERT_HELP(m);
	*out = m->rates;
	*fetching = m->fetching;
}

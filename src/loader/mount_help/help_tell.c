/* SPDX-License-Identifier: MIT */
/*
 * Reports direct hits to the mount, which does not see them: with each progress
 * report of a plan; without a plan, once a second; and when the loader closes.
 * Between reports hits are only counted, under the loader's lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "loader/mount_help/help_impl.h"

/* Without a plan, there are reports at this interval. */
#define TELL_NS NS_PER_S
/* The maximum time to wait for the answer to the last report, in ms. */
#define LAST_MS 100

struct help_direct help_untold(struct mount_help *m)
{
	struct help_direct untold = {m->direct.items - m->told.items,
		m->direct.bytes - m->told.bytes};

	ASSERT_HELP(m);
	m->told = m->direct;
	m->tell_due_ns = clock_now_ns() + TELL_NS;
	return untold;
}

void help_not_told(struct mount_help *m, const struct help_direct *untold)
{
	TURN_LOOK_SCOPE(m->c.turn);

	m->told.items -= untold->items;
	m->told.bytes -= untold->bytes;
}

int help_put_direct(const struct help_direct *untold, char *text, size_t size)
{
	text[0] = '\0';
	if (!untold->items)
		return 0;
	return snprintf(text, size,
		",\"direct_hits\":%" PRIu64 ",\"direct_hit_bytes\":%" PRIu64,
		untold->items, untold->bytes);
}

static size_t put_report(struct mount_help *m, const struct help_direct *untold)
{
	char counts[HELP_DIRECT_TEXT];

	(void)help_put_direct(untold, counts, sizeof(counts));
	return (size_t)snprintf(m->request, HELP_REQUEST_BYTES,
		"{\"cmd\":\"report\"%s}\n", counts);
}

/* A mount of an older version refuses the request. Then the counters of the
 * mount do not include direct hits. */
int help_tell(struct mount_help *m, const struct help_direct *untold)
{
	const char *line;
	size_t n;
	int rc = help_ask(m, put_report(m, untold), &line, &n);

	return rc < 0 ? rc : answer_ok(line, n);
}

void help_tell_last(struct mount_help *m, const struct help_direct *untold)
{
	char *line;
	size_t n;

	if (!untold->items ||
		talk_send(&m->talk, m->request, put_report(m, untold)) < 0)
		return;
	/* Wait for the answer, so that the mount has counted the report when
	 * the loader is closed. If the answer takes too long, the report is
	 * lost. */
	(void)talk_wait(&m->talk, LAST_MS, &line, &n);
}

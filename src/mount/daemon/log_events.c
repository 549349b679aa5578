/* SPDX-License-Identifier: MIT */
/*
 * Reports events of the daemon itself to the log. Any thread may call the
 * functions.
 */
#include "mount/daemon/mount_impl.h"

#include <stdio.h>

/* Open the log file before the working directory changes, so that a relative
 * path means the right file. */
int events_open(struct mount *m, struct error *err)
{
	struct log_config config = {
		.file = m->options.log_file,
		.mountpoint = m->mountpoint,
		.level = m->options.log_level,
		.json = m->options.log_json,
	};
	int rc = log_new(&m->log, &config, err);

	if (rc == 0)
		m->events = log_sink(m->log);
	return rc;
}

/* Report that the mount is ready. In the foreground, a source that did not
 * answer was reported on standard error before. */
void events_mounted(struct mount *m)
{
	struct event e = {.kind = EVENT_MOUNTED,
		.path = stack_name(m->stack),
		.dir = m->mountpoint};

	if (fs_given_connection(m->mountpoint) >= 0) {
		e.kind = EVENT_GIVEN;
		e.text = ctl_server_path(m->ctl);
	}
	if (session_connection(m->session) >= 0) {
		e.kind = session_was_replaced(m->session) ? EVENT_UPGRADED
							  : EVENT_TAKEN_OVER;
		e.text = session_last_end(m->session);
	}
	event_report(m->events, &e);
	e.kind = EVENT_TAKEOVER_REFUSED;
	e.text = m->refused;
	if (m->refused)
		event_report(m->events, &e);
	e.kind = EVENT_ORIGIN_SILENT;
	e.turn = true;
	if (stack_unreached(m->stack) &&
		(!m->options.foreground || m->options.log_file))
		event_report(m->events, &e);
}

void events_stopped(struct mount *m, uint64_t before)
{
	struct event e = {.kind = EVENT_PARTS_DROPPED,
		.n = m->counters.partial_dropped - before};

	if (e.n > 0)
		event_report(m->events, &e);
}

/* Report the end of the mount. The caller prints a failure on standard error,
 * so a failure is reported here only if there is a log file. */
void events_ended(struct mount *m, const struct error *why)
{
	struct event e = {.kind = EVENT_ENDED, .dir = m->mountpoint};
	char text[64];

	e.text = text;
	if (why) {
		e.kind = EVENT_START_FAILED;
		e.text = why->msg;
		if (!m->options.log_file)
			return;
	} else if (m->life.signal) {
		(void)snprintf(text, sizeof(text), "stopped by signal %d",
			m->life.signal);
	} else {
		(void)snprintf(text, sizeof(text), "it was unmounted");
	}
	event_report(m->events, &e);
}

/* SPDX-License-Identifier: MIT */
/*
 * Refuses requests that crash the daemon. A handler of fatal signals notes in
 * the session which request its thread was handling. A request that has caused
 * two crashes is answered with an I/O error. For a READ this includes every
 * READ of the same file, because readers try again. Crashes of other threads,
 * and SIGKILL, are not counted for any request.
 *
 * A signal handler has no argument. It finds the session by a global variable,
 * which is set once, and the request by a variable of its thread.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/counters.h"

#define RESENT (UINT64_C(1) << 63)

static struct session *striking;
static _Thread_local const struct fuse_in_header *at_work;

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FATAL_SIGNALS (sizeof(fatal) / sizeof(fatal[0]))
/* What there was before; only a sanitizer has handlers. Set once, like
 * striking. */
static struct sigaction before[FATAL_SIGNALS];

/* Let a sanitizer report the crash, because it says more, and end the process.
 * Else raise the signal again, which ends the process as if there were no
 * handler. */
static void end_by(int sig, siginfo_t *info, void *context)
{
	for (size_t i = 0; i < FATAL_SIGNALS; i++)
		if (fatal[i] == sig && before[i].sa_flags & SA_SIGINFO)
			before[i].sa_sigaction(sig, info, context);
	(void)raise(sig);
}

/* Only store values, because after a crash no function is safe to call. */
static void on_crash(int sig, siginfo_t *info, void *context)
{
	const struct fuse_in_header *in = at_work;

	if (in)
		session_note_crash(striking, sig, in->unique & ~RESENT,
			in->nodeid, in->opcode);
	else
		session_note_crash(striking, sig, 0, 0, 0);
	end_by(sig, info, context);
}

void strikes_begin(struct fs *fs)
{
	struct sigaction was,
		sa = {.sa_sigaction = on_crash,
			.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};

	(void)sigemptyset(&sa.sa_mask);
	striking = fs->config.session;
	for (size_t i = 0; i < FATAL_SIGNALS; i++)
		if (sigaction(fatal[i], &sa, &was) == 0 &&
			was.sa_sigaction != on_crash)
			before[i] = was;
}

static void report_poison(const struct fs *fs, const struct fuse_in_header *in)
{
	const struct fs_config *c = &fs->config;
	char path[MANIFEST_PATH_MAX];
	struct event e = {.kind = EVENT_POISON_REQUEST, .path = path};

	if (manifest_path(c->manifest, fs_node(c, in->nodeid), path,
		    sizeof(path)) <= 0)
		path[0] = '/', path[1] = '\0';
	COUNT(c->counters, reader_errors);
	COUNT(c->counters, poison_requests);
	event_report(c->events, &e);
}

static void refuse_poison(struct fs *fs, const struct fuse_in_header *in)
{
	struct fuse_out_header out = {
		.len = sizeof(out), .error = -EIO, .unique = in->unique};
	ssize_t n = write(fuse_session_fd(fs->se), &out, sizeof(out));

	(void)n; /* a failure cannot be reported */
	if (fs->journal)
		journal_answered(fs->journal, in->unique);
	report_poison(fs, in);
}

void fs_process(struct fs *fs, const struct fuse_buf *buf)
{
	const struct fuse_in_header *in = buf->mem;

	if (session_struck(fs->config.session, in->unique & ~RESENT, in->nodeid,
		    in->opcode)) {
		refuse_poison(fs, in);
		return;
	}
	at_work = in;
	fuse_session_process_buf(fs->se, buf);
	at_work = NULL;
}

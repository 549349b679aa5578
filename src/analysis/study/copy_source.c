/* SPDX-License-Identifier: MIT */
/*
 * The first step of an analysis: fetches the dataset into the cache. Later
 * segments choose the part of it that may hit. See study_run_impl.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/study/copy_rate_impl.h"
#include "analysis/study/source_files_impl.h"
#include "analysis/study/study_run_impl.h"
#include "analysis/study/sample_unit_impl.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"

/* The progress is shown at this interval. */
#define SHOW_NS (200 * NS_PER_MS)

/* If the rates in the first and the last tenth of the copy differ by this
 * factor, the source counts as changed. */
#define CHANGED 1.5

/* A message of the fetching process to its parent: the progress, or the end. */
struct fetched {
	int rc;
	int fd;	     /* the child's end of the pipe to its parent */
	bool partly; /* the cache has no room for the whole dataset */
	double bytes;
	struct error err;
};

/* Send a message to the parent. A pipe takes a message of this length at once.
 */
static void tell_fetched(const struct fetched *f)
{
	/* if this fails, the parent reports that fetching failed */
	(void)!write(f->fd, f, sizeof(*f));
}

static void on_fetch_progress(void *arg, const json_t *line)
{
	struct fetched *f = arg;

	f->bytes = (double)ask_number(line, "bytes_done");
	tell_fetched(f);
}

static int fetch_on(const char *mountpoint, struct fetched *f)
{
	struct ctl_client *ctl = NULL;
	struct error *err = &f->err;
	json_t *reply = NULL;
	int rc = ctl_connect(&ctl, mountpoint, err);

	if (rc == 0)
		rc = ctl_request(ctl, json_pack("{s:s}", "cmd", "warm"), 0,
			on_fetch_progress, f, &reply, err);
	if (rc < 0)
		return rc;
	f->partly = ask_number(reply, "not_fitting_items") > 0;
	f->bytes = (double)ask_number(reply, "cached_bytes");
	if (ask_number(reply, "failed_items") > 0)
		return error_set(err, -EIO, "cannot read the source: %s",
			ask_text(reply, "failed_why"));
	return 0;
}

static void fetch_in_child(const struct analysis_run *r, struct fetched *f)
{
	int rc;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* ignore SIGINT: the parent decides when to end */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	rc = fetch_on(r->c->mountpoint, f);
	f->rc = rc;
	tell_fetched(f);
	_exit(0);
}

/* Read the next message of the child into *f. Returns false when the child has
 * ended; *f then has its last message. */
static bool fetch_goes_on(pid_t pid, int fd, struct fetched *f)
{
	bool ended = pid <= 0 || waitpid(pid, NULL, WNOHANG) != 0;

	while (read(fd, f, sizeof(*f)) == (ssize_t)sizeof(*f))
		;
	return !ended;
}

static double seconds_since(uint64_t ns)
{
	return (double)(clock_now_ns() - ns) / (double)NS_PER_S;
}

static void show_fetched(const struct analysis_run *r, const struct fetched *f,
	uint64_t *next_ns)
{
	char done[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX];

	if (isatty(STDERR_FILENO) != 1 || clock_now_ns() < *next_ns)
		return;
	(void)fprintf(stderr, "\rrefrain: analyze: copied %s of %s \033[K",
		size_format((uint64_t)f->bytes, done),
		size_format(r->p->source_bytes, all));
	*next_ns = clock_now_ns() + SHOW_NS;
}

/* Is the part that was copied enough? It is if the source is slow, and if
 * images can stand in for the rest. */
static bool is_enough(const struct analysis_run *r, const struct fetched *f,
	uint64_t *until_ns)
{
	if (f->bytes == 0 || clock_now_ns() < *until_ns)
		return false;
	*until_ns = UINT64_MAX;
	return names_are_images(r->c->mountpoint);
}

/* If the source's rate changed during the copy, add a note: later reads may be
 * slower than the copy. */
static void note_source_change(
	struct analysis_run *r, const struct copied *copied)
{
	double change = copied_change(copied);
	char note[PROFILE_TEXT_MAX];

	if (change < CHANGED && change > 1 / CHANGED)
		return;
	(void)snprintf(note, sizeof(note),
		"the source was %.1f times as %s at the end of the copying as "
		"at its beginning (a cache, or credits for bursts?), so other "
		"epochs may differ",
		change > 1 ? change : 1 / fmax(change, 0.01),
		change > 1 ? "fast" : "slow");
	profile_note(r->p, note);
}

/* Fetch the files. A child process sends the request, because such a long
 * request ends only when its connection closes: the daemon stops fetching when
 * the child is killed. */
static int fetch_files(struct analysis_run *r, struct fetched *f)
{
	uint64_t begun_ns = clock_now_ns(), show_ns = begun_ns + NS_PER_S;
	uint64_t until_ns = begun_ns + r->c->copy_s * NS_PER_S;
	struct copied copied = {.n = 0};
	bool enough = false;
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(r->err, -errno, "cannot fetch: %m");
	f->fd = fd[1];
	pid = fork();
	if (pid == 0)
		fetch_in_child(r, f);
	while (fetch_goes_on(pid, fd[0], f)) {
		copied_add(&copied, seconds_since(begun_ns), f->bytes);
		show_fetched(r, f, &show_ns);
		enough |= is_enough(r, f, &until_ns);
		if (enough || *r->c->stop)
			(void)kill(pid, SIGKILL);
		run_wait();
	}
	(void)close(fd[0]);
	(void)close(fd[1]);
	if (show_ns > begun_ns + NS_PER_S)
		(void)fputc('\n', stderr);
	if (*r->c->stop)
		return error_set(r->err, -EINTR, "interrupted");
	f->partly |= enough;
	note_source_change(r, &copied);
	return f->rc < 0 && !enough ? error_set(r->err, f->rc, "%s", f->err.msg)
				    : 0;
}

/* Choose the unit of rates; see enum profile_unit. */
static void set_unit(struct analysis_run *r)
{
	struct profile *p = r->p;
	char note[PROFILE_TEXT_MAX];
	struct file_unit u = {UNIT_SAMPLES, NULL};

	r->by_bytes = r->c->samples > 0;
	p->samples = r->c->samples;
	if (r->by_bytes)
		return;
	u = unit_find(r->c->mountpoint);
	if (u.unit == UNIT_SAMPLES && names_are_mixed(r->c->mountpoint))
		u.unit = UNIT_FILES;
	p->unit = u.unit;
	p->samples = (double)p->source_items;
	if (u.unit == UNIT_FILES)
		profile_note(p,
			"each file was counted as a sample; if files hold "
			"several samples, or a sample is several files, give "
			"the number with --samples");
	if (u.unit != UNIT_MB)
		return;
	r->by_bytes = true;
	p->samples = (double)p->source_bytes / 1e6;
	(void)snprintf(note, sizeof(note),
		"%s files hold several samples, so MB are counted; give the "
		"number of samples with --samples",
		u.format);
	profile_note(p, note);
}

/* Have the mount serve cached images in place of those that were not copied. */
static int use_stand_ins(struct analysis_run *r, double share)
{
	char note[PROFILE_TEXT_MAX];

	if (run_tell(r,
		    json_pack("{s:s, s:s}", "cmd", "content", "content",
			    "stand-in")) < 0)
		return error_set(r->err, -ENOSPC,
			"the dataset does not fit in its temporary copy, and "
			"only JPEG files can stand in for others; give it more "
			"room with --cache, or analyse a part");
	r->stand_ins = true;
	(void)snprintf(note, sizeof(note),
		"%.0f %% of the dataset was copied, for want of room or time "
		"(see --cache and --copy); images of it were read in place of "
		"others of like size",
		100 * share);
	profile_note(r->p, note);
	return 0;
}

/* Have the kernel keep no pages, because bytes are counted here. A read of kept
 * pages would count as a read of the whole file, although only a part of it may
 * have been read. */
static int drop_pages(struct analysis_run *r)
{
	return run_tell(r,
		json_pack(
			"{s:s, s:f, s:b}", "cmd", "mask", "x", 1.0, "keep", 0));
}

int run_copy(struct analysis_run *r)
{
	struct fetched f = {.rc = -EIO, .err = {"fetching the dataset failed"}};
	uint64_t begun_ns = clock_now_ns();
	int rc = fetch_files(r, &f);
	double took_s = seconds_since(begun_ns);
	double share = f.bytes / (double)r->p->source_bytes;

	if (rc == 0 && f.partly)
		rc = use_stand_ins(r, share);
	if (rc < 0)
		return rc;
	set_unit(r);
	if (took_s > 0)
		r->p->s.value = share * r->p->samples / took_s;
	return r->by_bytes ? drop_pages(r) : 0;
}

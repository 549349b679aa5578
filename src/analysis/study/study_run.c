/* SPDX-License-Identifier: MIT */
/* The steps of an analysis: it waits for the list of files, starts the command,
 * watches it, and measures segments; see study_run_impl.h. */
#include "analysis/study/study_run_impl.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/study/busy_process_impl.h"
#include "common/base/cgroup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"

/* The interval between two readings of the counters. */
#define LOOK_NS (25 * NS_PER_MS)

/* Only one in this many looks at the trainer checks whether it has mapped
 * files. */
#define LOOKS_A_MAP 8

/* The time between two ticks of the timeline. */
#define TICK_S 0.5

/* Time limits for the daemon's answers, except that of `warm`, which has none.
 * For `mask` or `content` the limit is longer, because the daemon may have to
 * drop the pages of a million files before it answers. */
#define ANSWER_S 30
#define CHANGE_S 300

/* If less than this share of each file is read, files cannot be counted. */
#define READ_LEAST 0.9

/* If files are read this many times, they cannot be counted. A smaller number
 * is possible: pages may be dropped before a slow reader comes to them, and are
 * then read twice. */
#define READ_MOST 4

/* An optional measurement may begin until this many times the limit of one
 * measurement has passed since the first read. By default this is 100 s for
 * limits of 20 s, in a run of three minutes. */
#define MORE_UNTIL 5

/* The maximum share of reads that get bytes neither from the temporary copy nor
 * from an image that stands in. */
#define MISSED_MOST 0.05

/* -- The daemon ------------------------------------------------------------ */

int run_tell(struct analysis_run *r, json_t *request)
{
	json_t *reply = NULL;
	int rc = ctl_request(
		r->ctl, request, CHANGE_S, NULL, NULL, &reply, r->err);

	json_decref(reply);
	return rc;
}

int run_mask(struct analysis_run *r, double x)
{
	r->x = x;
	r->starting = false;
	return run_tell(r, json_pack("{s:s, s:f}", "cmd", "mask", "x", x));
}

static double member(const json_t *reply, const char *name)
{
	return json_number_value(json_object_get(reply, name));
}

static int get_counts(struct analysis_run *r, struct counts *n)
{
	json_t *reply = NULL;
	int rc = ctl_request(r->ctl, json_pack("{s:s}", "cmd", "rates"),
		ANSWER_S, NULL, NULL, &reply, r->err);

	if (rc < 0)
		return rc;
	*n = (struct counts){.time_s = member(reply, "time_us") / 1e6,
		.samples = member(reply, "first_reads"),
		.bytes = member(reply, "bytes"),
		.hits = member(reply, "hits"),
		.misses = member(reply, "misses"),
		.idle_s = member(reply, "idle_us") / 1e6,
		.tiny = member(reply, "tiny"),
		.starved_s = member(reply, "starved_us") / 1e6,
		.cpu_s = member(reply, "cpu_us") / 1e6,
		.readers = member(reply, "readers"),
		.refused = json_is_true(json_object_get(reply, "refused"))};
	json_decref(reply);
	if (r->by_bytes)
		n->samples =
			n->bytes * r->p->samples / (double)r->p->source_bytes;
	return 0;
}

/* Get the intervals of the readers since the start of the mount. */
static int get_waits(struct analysis_run *r, struct waits *w)
{
	json_t *reply = NULL;
	int rc = ctl_request(r->ctl,
		json_pack("{s:s, s:b}", "cmd", "rates", "intervals", 1),
		ANSWER_S, NULL, NULL, &reply, r->err);

	if (rc == 0)
		waits_read(w, reply);
	json_decref(reply);
	return rc;
}

void run_wait(void)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};

	(void)nanosleep(&look, NULL); /* a signal ends the wait early */
}

/* Fail if the command has mapped files: their pages stay in memory, or are read
 * more than once. */
static int refuse_maps(struct analysis_run *r)
{
	if (!trainer_maps(&r->trainer, r->device))
		return 0;
	return error_set(r->err, -ENOTSUP,
		"the command maps files of the dataset into its memory, so "
		"what it reads cannot be counted; have it read them instead");
}

/* Look for mapped files, but rarely during a measurement, because this takes
 * milliseconds for each process. */
static int look_for_maps(struct analysis_run *r)
{
	if (!r->starting || r->looks++ % LOOKS_A_MAP != 0)
		return 0;
	return refuse_maps(r);
}

/* Check that the command runs. Returns 0, -EINTR after a signal, or another
 * -errno once the command has ended. */
static int look_at_trainer(struct analysis_run *r, const char *doing)
{
	int status;

	if (*r->c->stop)
		return error_set(r->err, -EINTR, "interrupted");
	if (!trainer_ended(&r->trainer))
		return look_for_maps(r);
	status = r->trainer.status;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return error_set(r->err, -ECHILD,
			"the command ended during %s; make it run longer, for "
			"example for more epochs, or lower --seconds",
			doing);
	return error_set(r->err, -ECHILD,
		"the command failed with %s %d during %s; see its messages",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		doing);
}

/* -- Before the command ---------------------------------------------------- */

static int wait_for_scan(struct analysis_run *r)
{
	json_t *status = NULL;
	bool complete = false;
	int rc = 0;

	while (rc == 0 && !complete) {
		if (*r->c->stop)
			return error_set(r->err, -EINTR, "interrupted");
		rc = ask_status(r->ctl, &status, r->err);
		if (rc < 0)
			break;
		complete = strcmp(ask_text(status, "scan"), "running") != 0 &&
			json_is_true(json_object_get(status, "ready"));
		r->p->source_items = ask_number(status, "files_known");
		r->p->source_bytes = ask_number(status, "bytes_known");
		(void)escape_text(r->p->source, sizeof(r->p->source),
			ask_text(status, "source"));
		json_decref(status);
		if (!complete)
			run_wait();
	}
	if (rc == 0 && r->p->source_bytes == 0)
		return error_set(r->err, -ENOENT,
			"there is nothing to read in '%s'", r->p->source);
	return rc;
}

/* Returns the number of processors that the affinity allows; 0: unknown. There
 * may be more than fit into a cpu_set_t. */
static unsigned allowed_processors(void)
{
	unsigned n = 0;

	for (int most = 1024; n == 0 && most <= 1 << 20; most *= 2) {
		cpu_set_t *set = CPU_ALLOC(most);
		size_t bytes = CPU_ALLOC_SIZE(most);

		if (set && sched_getaffinity(0, bytes, set) == 0)
			n = (unsigned)CPU_COUNT_S(bytes, set);
		CPU_FREE(set);
	}
	return n;
}

/* Returns the whole number of processors that the trainer may use. A fraction
 * of a processor is ignored: it is better to overestimate the share of
 * processors that the trainer uses than to underestimate it. */
static unsigned usable_processors(void)
{
	uint64_t limit = cgroup_processor_limit("") / 1000;
	unsigned n = allowed_processors();

	if (limit < n)
		n = (unsigned)limit;
	return n > 0 ? n : 1;
}

int run_prepare(struct analysis_run *r)
{
	struct profile *p = r->p;
	struct utsname name = {0};
	struct stat st;
	int rc = ctl_connect(&r->ctl, r->c->mountpoint, r->err);

	if (rc == 0)
		rc = wait_for_scan(r);
	if (rc == 0 && stat(r->c->mountpoint, &st) < 0)
		rc = error_set(r->err, -errno, "cannot use '%s': %m",
			r->c->mountpoint);
	if (rc < 0)
		return rc;
	r->device = st.st_dev;
	p->cpus = usable_processors();
	(void)uname(&name); /* cannot fail */
	(void)snprintf(p->machine, sizeof(p->machine), "%s %s %s", name.sysname,
		name.release, name.machine);
	return 0;
}

/* -- Segments -------------------------------------------------------------- */

/* Check that the number of files, or of bytes, gives the number of samples. */
static int check_reads(struct analysis_run *r, const struct counts *first,
	const struct counts *last)
{
	double files = last->samples - first->samples;
	double bytes = last->bytes - first->bytes;
	double mean = (double)r->p->source_bytes / (double)r->p->source_items;

	if (r->by_bytes)
		return 0;
	if (bytes > READ_MOST * mean * (files + 1))
		return error_set(r->err, -ENOTSUP,
			"the command does not read files from beginning to "
			"end, so they cannot be counted as samples; give the "
			"number of samples with --samples");
	/* If only a few files were read, they may be smaller than the others.
	 */
	if (bytes >=
		(READ_LEAST - fmin(0.3, 2 / sqrt(files + 1))) * mean * files)
		return 0;
	return error_set(r->err, -ENOTSUP,
		"the command reads only %.0f %% of each file, so files cannot "
		"be counted as samples; give the number with --samples",
		100 * bytes / (mean * files));
}

/* Add a tick to the timeline of the run, which begins with the first read. */
static void add_tick(struct analysis_run *r, const struct counts *n)
{
	double took_s = n->time_s - r->tick.time_s;
	struct profile *p = r->p;

	if (r->began.time_s == 0 || took_s < TICK_S ||
		p->nticks == PROFILE_TICKS_MAX)
		return;
	p->ticks[p->nticks++] = (struct profile_tick){
		.time_s = n->time_s - r->began.time_s,
		.rate = (n->samples - r->tick.samples) / took_s,
		.starved = fmin((n->starved_s - r->tick.starved_s) / took_s, 1),
		.x = r->x};
	r->tick = *n;
}

/* Wait a moment, and get the counts. */
static int next_counts(
	struct analysis_run *r, const char *doing, struct counts *n)
{
	int rc;

	run_wait();
	rc = look_at_trainer(r, doing);
	if (rc == 0)
		rc = get_counts(r, n);
	if (rc < 0)
		return rc;
	r->now_s = n->time_s;
	add_tick(r, n);
	return 0;
}

/* Returns the time limit for a command that reads nothing. During the run it
 * may be validating or saving a checkpoint. The limit is shortest with tiny
 * images (x < 0), because the report does not need them. */
static double pause_limit_s(const struct analysis_run *r)
{
	if (r->starting)
		return r->c->start_s;
	return r->x < 0 ? r->c->start_s / 6.0 : r->c->start_s / 2.0;
}

/* Wait until the command has read more than *n says. Returns -ENOMSG, without a
 * message, if it reads nothing within the limit. */
static int await_read(
	struct analysis_run *r, const char *doing, struct counts *n)
{
	const double limit_s = pause_limit_s(r);
	const struct counts was = *n;
	int rc = 0;

	while (rc == 0 && n->bytes <= was.bytes) {
		if (n->time_s - was.time_s > limit_s)
			return -ENOMSG;
		rc = next_counts(r, doing, n);
	}
	return rc;
}

int run_start(struct analysis_run *r)
{
	struct counts n;
	int rc = get_counts(r, &r->before);

	n = r->before;
	r->trainer.daemon = ctl_client_pid(r->ctl);
	if (rc == 0)
		rc = trainer_start(&r->trainer, r->c, r->err);
	r->starting = true;
	if (rc == 0)
		rc = await_read(r, "the start, before it read anything", &n);
	if (rc == -ENOMSG)
		return error_set(r->err, -ETIMEDOUT,
			"the command read nothing through the mount in %u s: "
			"it may read another path, read in processes that run "
			"elsewhere (Docker, srun), or be slow to start (see "
			"--start)",
			r->c->start_s);
	r->began = r->tick = n;
	r->x = 1;
	return rc;
}

/* Report why nothing was read for a long time. If files are mapped or read in
 * part, these are the likely reason. */
static int stopped_reading(
	struct analysis_run *r, const struct counts *n, const char *doing)
{
	int rc = refuse_maps(r);

	if (rc == 0)
		rc = check_reads(r, &r->before, n);
	if (rc < 0)
		return rc;
	return error_set(r->err, -ENODATA,
		"the command stopped reading for %.0f s during %s: it may keep "
		"what it has read (each epoch must read every file again, to "
		"its end), or do other work for longer (see --start)",
		pause_limit_s(r), doing);
}

/* Note the share of the processors that the command and the daemon used in the
 * segment. */
static void note_cpus(struct analysis_run *r, const struct counts *n,
	double cpu_s, const struct busy *was)
{
	double took_s = n->time_s - r->segment.begun.time_s;
	struct busy now = {NULL};

	cpu_s = trainer_cpu_s(&r->trainer) - cpu_s;
	/* add the daemon's processor time */
	cpu_s += n->cpu_s - r->segment.begun.cpu_s;
	r->cpus_used = fmax(cpu_s, 0) / took_s / (double)r->p->cpus;
	busy_look(&now, &r->trainer);
	r->busiest = busy_most_s(was, &now) / took_s;
	busy_release(&now);
}

bool run_has_time(const struct analysis_run *r)
{
	return r->now_s - r->began.time_s < MORE_UNTIL * r->c->seconds;
}

/* Add counts until the segment is complete. r->waits gets the intervals of the
 * readers, but not those of the beginning, which the segment skips. */
static int fill_segment(
	struct analysis_run *r, const char *doing, struct counts *n)
{
	struct waits from, to;
	bool began = false;
	int rc = 0;

	while (rc == 0 && !segment_add(&r->segment, n)) {
		if (!began && r->segment.measuring) {
			began = true;
			rc = get_waits(r, &from);
		}
		if (rc == 0)
			rc = next_counts(r, doing, n);
	}
	r->waits = (struct waits){.ran_s = 0};
	if (rc == 0 && began)
		rc = get_waits(r, &to);
	if (rc == 0 && began)
		waits_add(&r->waits, &from, &to);
	return rc;
}

/* Measure a segment, which begins with the next read. */
static int measure_segment(struct analysis_run *r, const char *doing,
	double seconds, struct counts *n)
{
	struct busy was = {NULL};
	int rc = await_read(r, doing, n);
	double cpu_s;

	if (rc == -ENOMSG)
		return stopped_reading(r, n, doing);
	cpu_s = trainer_cpu_s(&r->trainer);
	busy_look(&was, &r->trainer);
	segment_begin(&r->segment, n, seconds, r->p->samples);
	rc = fill_segment(r, doing, n);
	if (rc == 0)
		note_cpus(r, n, cpu_s, &was);
	busy_release(&was);
	return rc;
}

int run_segment(struct analysis_run *r, const char *doing, double seconds)
{
	struct counts n;
	int rc = get_counts(r, &n);
	double until_s = rc < 0 ? 0 : n.time_s + pause_limit_s(r);

	if (isatty(STDERR_FILENO) == 1)
		(void)fprintf(stderr, "refrain: analyze: now %s\n", doing);
	/* If there was a long pause, the only reads may be in the beginning,
	 * which is skipped. In this case measure again for twice as long. */
	for (; rc == 0; seconds *= 2) {
		rc = measure_segment(r, doing, seconds, &n);
		if (rc == 0 && segment_rate(&r->segment).value > 0)
			return 0;
		if (rc == 0 && n.time_s > until_s)
			rc = stopped_reading(r, &n, doing);
	}
	return rc;
}

int run_check(struct analysis_run *r)
{
	double miss = segment_miss(&r->segment);
	int rc = refuse_maps(r);

	if (rc == 0 && r->stand_ins && miss > MISSED_MOST)
		return error_set(r->err, -ENOSPC,
			"%.0f %% of what the command reads is not in the "
			"temporary copy, and has no JPEG files to stand in for "
			"it; give the copy more room with --cache",
			100 * miss);
	return rc < 0 ? rc
		      : check_reads(r, &r->segment.end[0], &r->segment.last);
}

void run_end(struct analysis_run *r)
{
	trainer_stop(&r->trainer);
	ctl_disconnect(r->ctl);
}

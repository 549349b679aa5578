/* SPDX-License-Identifier: MIT */
/*
 * One analysis from its beginning to its end: everything is fetched, the
 * command starts, and the mount's mask takes it from one segment to the next.
 * One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyze/segment_impl.h"
#include "analyze/trainer_impl.h"
#include "base/clock.h"
#include "ctl/ctl.h"

/* Between two looks at the counters. */
#define LOOK_NS (25 * NS_PER_MS)

/* The daemon answers within this time, but for `warm`. */
#define ANSWER_S 30

/* A rate without misses that changed by more during the run is noted. */
#define DRIFT 0.03

/* Files of which less is read cannot be counted. */
#define READ_LEAST 0.9

/* Misses that cost no more than this need no points between. */
#define SOURCE_HIDDEN 0.97

/* g is exact if the trainer was this much faster with tiny images, and left
 * processors idle; else images may still have cost it time. */
#define FASTER 1.3
#define CPUS_IDLE 0.8

struct analysis_run {
	const struct analyze_config *c;
	struct profile *p;
	struct error *err;
	struct ctl_client *ctl;
	struct trainer trainer;
	struct segment segment;
	double cpus_used; /* in the last segment, of those allowed */
};

static void add_note(struct profile *p, const char *text)
{
	if (p->nnotes < PROFILE_NOTES_MAX)
		(void)snprintf(
			p->notes[p->nnotes++], PROFILE_TEXT_MAX, "%s", text);
}

/* -- The daemon ------------------------------------------------------------ */

static int tell_mount(struct analysis_run *r, json_t *request)
{
	json_t *reply = NULL;
	int rc = ctl_request(
		r->ctl, request, ANSWER_S, NULL, NULL, &reply, r->err);

	json_decref(reply);
	return rc;
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
		.tiny = member(reply, "tiny")};
	json_decref(reply);
	if (r->c->samples > 0)
		n->samples =
			n->bytes * r->c->samples / (double)r->p->source_bytes;
	return 0;
}

static void wait_a_moment(void)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};

	(void)nanosleep(&look, NULL); /* a signal ends it early */
}

/* -EINTR after a signal, an error once the command has ended. */
static int look_at_trainer(struct analysis_run *r, const char *doing)
{
	int status;

	if (*r->c->stop)
		return error_set(r->err, -EINTR, "interrupted");
	if (!trainer_ended(&r->trainer))
		return 0;
	status = r->trainer.status;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return error_set(r->err, -ECHILD,
			"the command ended while %s; make it run longer, for "
			"example for more epochs, or lower --seconds",
			doing);
	return error_set(r->err, -ECHILD,
		"the command failed with %s %d while %s; see its messages",
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
		(void)snprintf(r->p->source, sizeof(r->p->source), "%s",
			ask_text(status, "source"));
		json_decref(status);
		if (!complete)
			wait_a_moment();
	}
	if (rc == 0 && r->p->source_bytes == 0)
		return error_set(r->err, -ENOENT,
			"there is nothing to read in '%s'", r->p->source);
	return rc;
}

/* The outcome of the fetching process, for its parent. */
struct fetched {
	int rc;
	struct error err;
};

static int fetch_on(const char *mountpoint, struct error *err)
{
	struct ctl_client *ctl = NULL;
	json_t *reply = NULL;
	int rc = ctl_connect(&ctl, mountpoint, err);

	if (rc == 0)
		rc = ctl_request(ctl, json_pack("{s:s}", "cmd", "warm"), 0,
			NULL, NULL, &reply, err);
	if (rc < 0)
		return rc;
	if (ask_number(reply, "not_fitting_items") > 0)
		return error_set(err, -ENOSPC,
			"the dataset does not fit the cache of the analysis; "
			"give a larger one with --cache, or analyse a part of "
			"the dataset");
	if (ask_number(reply, "failed_items") > 0)
		return error_set(err, -EIO, "cannot read the source: %s",
			ask_text(reply, "failed_why"));
	return 0;
}

/*
 * Fetch everything: later segments choose what of it may hit. A process of its
 * own asks for it, as nothing else ends a request that takes so long: the
 * daemon stops when that process is killed.
 */
static int fetch_in_child(struct analysis_run *r)
{
	struct fetched f = {.rc = -EIO, .err = {"fetching the dataset failed"}};
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(r->err, -errno, "cannot fetch: %m");
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)signal(SIGINT, SIG_IGN); /* the parent decides */
		(void)signal(SIGTERM, SIG_DFL);
		f.rc = fetch_on(r->c->mountpoint, &f.err);
		(void)!write(fd[1], &f, sizeof(f));
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (*r->c->stop)
			(void)kill(pid, SIGKILL);
		wait_a_moment();
	}
	(void)!read(fd[0], &f, sizeof(f)); /* else it says that it failed */
	(void)close(fd[0]);
	(void)close(fd[1]);
	if (*r->c->stop)
		return error_set(r->err, -EINTR, "interrupted");
	return f.rc < 0 ? error_set(r->err, f.rc, "%s", f.err.msg) : 0;
}

static int fetch_all(struct analysis_run *r)
{
	uint64_t begun_ns = clock_now_ns();
	int rc = fetch_in_child(r);
	double took_s = (double)(clock_now_ns() - begun_ns) / (double)NS_PER_S;

	if (took_s > 0)
		r->p->s.value = r->p->samples / took_s;
	return rc;
}

static int analysis_prepare(struct analysis_run *r)
{
	struct profile *p = r->p;
	struct utsname name = {0};
	cpu_set_t set;
	int rc = ctl_connect(&r->ctl, r->c->mountpoint, r->err);

	if (rc == 0)
		rc = wait_for_scan(r);
	if (rc < 0)
		return rc;
	p->samples =
		r->c->samples > 0 ? r->c->samples : (double)p->source_items;
	p->cpus = sched_getaffinity(0, sizeof(set), &set) == 0
		? (unsigned)CPU_COUNT(&set)
		: 1;
	(void)uname(&name); /* cannot fail */
	(void)snprintf(p->machine, sizeof(p->machine), "%s %s %s", name.sysname,
		name.release, name.machine);
	return fetch_all(r);
}

static int wait_for_reads(struct analysis_run *r)
{
	uint64_t until_ns = clock_now_ns() + r->c->start_s * NS_PER_S;
	struct counts n = {0};
	int rc = 0;

	while (rc == 0 && n.bytes == 0) {
		if (clock_now_ns() > until_ns)
			return error_set(r->err, -ETIMEDOUT,
				"the command read nothing through the mount in "
				"%u s: it reads another path, from processes "
				"that run elsewhere, or is slow to start (see "
				"--start)",
				r->c->start_s);
		wait_a_moment();
		rc = look_at_trainer(r, "it had read nothing yet");
		if (rc == 0)
			rc = get_counts(r, &n);
	}
	return rc;
}

/* -- Segments -------------------------------------------------------------- */

static int run_segment(
	struct analysis_run *r, const char *doing, double seconds)
{
	double cpu_s = trainer_cpu_s(&r->trainer), took_s;
	struct counts n;
	int rc = get_counts(r, &n);

	if (rc < 0)
		return rc;
	if (isatty(STDERR_FILENO) == 1)
		(void)fprintf(stderr, "refrain: analyze: %s\n", doing);
	segment_begin(&r->segment, &n, seconds);
	do {
		wait_a_moment();
		rc = look_at_trainer(r, doing);
		if (rc == 0)
			rc = get_counts(r, &n);
	} while (rc == 0 && !segment_add(&r->segment, &n));
	if (rc < 0)
		return rc;
	took_s = n.time_s - r->segment.begun.time_s;
	r->cpus_used = (trainer_cpu_s(&r->trainer) - cpu_s) / took_s /
		(double)r->p->cpus;
	if (segment_rate(&r->segment).value <= 0)
		return error_set(r->err, -ENODATA,
			"the command stopped reading while %s; each epoch must "
			"read the files again",
			doing);
	return 0;
}

/* With a share x of the dataset in the cache. */
static int measure_at(
	struct analysis_run *r, double x, struct profile_point *out)
{
	char doing[64];
	int rc = tell_mount(r, json_pack("{s:s, s:f}", "cmd", "mask", "x", x));

	(void)snprintf(
		doing, sizeof(doing), "%.0f %% cached was measured", 100 * x);
	if (rc == 0)
		rc = run_segment(r, doing, r->c->seconds);
	if (rc < 0)
		return rc;
	*out = (struct profile_point){.x = x,
		.miss = segment_miss(&r->segment),
		.rate = segment_rate(&r->segment)};
	if (r->p->npoints < PROFILE_POINTS_MAX)
		r->p->points[r->p->npoints++] = *out;
	return 0;
}

/* Are samples what we count? */
static int check_reads(struct analysis_run *r)
{
	const struct segment *s = &r->segment;
	double files = s->last.samples - s->first.samples;
	double bytes = s->last.bytes - s->first.bytes;
	double mean = (double)r->p->source_bytes / (double)r->p->source_items;

	if (r->c->samples > 0 || bytes >= READ_LEAST * mean * files)
		return 0;
	return error_set(r->err, -ENOTSUP,
		"the command reads only %.0f %% of each file, so files cannot "
		"be counted as samples; give the number with --samples",
		100 * bytes / (mean * files));
}

static int measure_warm(struct analysis_run *r)
{
	struct profile_point warm;
	int rc =
		run_segment(r, "the command was starting", r->c->seconds / 2.0);

	if (rc == 0)
		rc = measure_at(r, 1, &warm);
	if (rc == 0)
		rc = check_reads(r);
	if (rc < 0)
		return rc;
	r->p->r1 = warm.rate;
	r->p->cpus_used = r->cpus_used;
	r->p->gaps = segment_gaps(&r->segment);
	if (warm.miss > 0.01)
		add_note(r->p,
			"some reads missed although everything was cached");
	return 0;
}

static int measure_misses(struct analysis_run *r)
{
	struct profile_point at;
	struct model m;
	int rc = measure_at(r, 0, &at);

	if (rc < 0)
		return rc;
	r->p->r0 = at.rate;
	m = profile_model(r->p);
	if (m.r0 > SOURCE_HIDDEN * m.r1)
		return 0;
	for (unsigned i = 0; rc == 0 && i < MODEL_POINTS; i++)
		rc = measure_at(r, 1 - model_point(&m, i), &at);
	return rc;
}

static int measure_drift(struct analysis_run *r)
{
	struct profile *p = r->p;
	struct profile_point again;
	int rc = measure_at(r, 1, &again);
	double drift;

	if (rc < 0)
		return rc;
	drift = again.rate.value / p->r1.value - 1;
	if (fabs(drift) > DRIFT)
		add_note(p,
			"the rate with everything cached changed by more than "
			"3 % during the run; measure again on a quiet machine");
	p->r1.value = (p->r1.value + again.rate.value) / 2;
	if (again.rate.ci > p->r1.ci)
		p->r1.ci = again.rate.ci;
	return 0;
}

/* The command may not like the images: then the rest stands without them. */
static int measure_tiny(struct analysis_run *r)
{
	struct profile *p = r->p;
	int rc;

	p->g = p->r1;
	p->g_bound = true;
	if (r->c->no_tiny)
		return 0;
	rc = tell_mount(r,
		json_pack("{s:s, s:s}", "cmd", "content", "content", "tiny"));
	if (rc == 0)
		rc = run_segment(r, "tiny images were read", r->c->seconds);
	if (rc == -ECHILD || rc == -ENODATA) {
		add_note(p, "the command failed on tiny images");
		return 0;
	}
	if (rc < 0)
		return rc;
	if (r->segment.last.tiny <= r->segment.first.tiny) {
		add_note(p,
			"no JPEG files were read: what preparing costs is "
			"not known");
		return 0;
	}
	if (segment_rate(&r->segment).value <= p->r1.value)
		return 0;
	p->g = segment_rate(&r->segment);
	p->g_bound =
		p->g.value < FASTER * p->r1.value || r->cpus_used >= CPUS_IDLE;
	return 0;
}

static int analyse(struct analysis_run *r)
{
	int rc = analysis_prepare(r);

	if (rc == 0)
		rc = trainer_start(&r->trainer, r->c, r->err);
	if (rc == 0)
		rc = wait_for_reads(r);
	if (rc == 0)
		rc = measure_warm(r);
	if (rc == 0)
		rc = measure_misses(r);
	if (rc == 0)
		rc = measure_drift(r);
	if (rc == 0)
		rc = measure_tiny(r);
	return rc;
}

int analyze_run(const struct analyze_config *config, struct profile *p,
	struct error *err)
{
	struct analysis_run r = {.c = config, .p = p, .err = err};
	int rc = analyse(&r);

	trainer_stop(&r.trainer);
	ctl_disconnect(r.ctl);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * A run: list the source, divide it into units, make those that the record
 * lacks with several threads, and report. The thread that calls recode_run()
 * keeps the record and shows the progress meanwhile.
 */
#include "loader/recode/recode.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/lock.h"
#include "common/base/path.h"
#include "loader/recode/recode_impl.h"

#define RECODE_THREADS_MAX 256u
#define SHOW_NS (100 * NS_PER_MS)
/* The record is brought up to date this often. Each time, all written bytes go
 * to the disk. */
#define RECORD_NS (2 * NS_PER_S)

/* -- The options ----------------------------------------------------------- */

/* The options as text, which the marks and the record have. */
static void describe(
	const struct recode_options *o, bool shards, char text[SETTINGS_MAX])
{
	const struct transcode_options *f = &o->form;
	char size[32] = "", tar[40] = "", mcus[16] = "row";

	if (f->shorter)
		(void)snprintf(size, sizeof(size), " size=%u", f->shorter);
	if (shards && o->shard_bytes)
		(void)snprintf(
			tar, sizeof(tar), " shards=%" PRIu64, o->shard_bytes);
	if (f->restart_mcus)
		(void)snprintf(mcus, sizeof(mcus), "%u", f->restart_mcus);
	switch (f->form) {
	case TRANSCODE_BASELINE:
		(void)snprintf(text, SETTINGS_MAX, "baseline%s", tar);
		break;
	case TRANSCODE_RESTART:
		(void)snprintf(text, SETTINGS_MAX, "restart=%s%s", mcus, tar);
		break;
	case TRANSCODE_PROGRESSIVE:
		(void)snprintf(text, SETTINGS_MAX, "progressive%s", tar);
		break;
	case TRANSCODE_QUALITY:
		(void)snprintf(text, SETTINGS_MAX, "quality=%u%s%s%s",
			f->quality, size,
			f->sampling_420 ? " sampling=420" : "", tar);
		break;
	}
}

/* Set the rendition of the target; and refuse a second loss. */
static int set_rendition(
	struct recode_job *j, struct recode_result *r, struct error *err)
{
	char before[RENDITION_MAX];
	int rc = rendition_read(j->source_fd, before);

	if (rc < 0)
		return error_set(err, rc, "cannot read '%s/%s': %m",
			j->o->source, RENDITION_FILE);
	if (j->o->form.form != TRANSCODE_QUALITY) {
		memcpy(r->rendition, before, sizeof(before));
		return 0;
	}
	if (before[0] && !j->o->again)
		return error_set(err, -EEXIST,
			"'%s' was re-coded before (%s), and would lose again; "
			"re-code the originals, or say --again",
			j->o->source, before);
	if ((size_t)snprintf(r->rendition, sizeof(r->rendition), "%s%s%s",
		    j->mark, before[0] ? " of " : "",
		    before) < sizeof(r->rendition))
		return 0;
	return error_set(err, -E2BIG, "'%s' was re-coded too often: %s",
		j->o->source, before);
}

/* -- Directories ----------------------------------------------------------- */

static int open_directory(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? error_set(err, -errno, "cannot open '%s': %m", path)
		      : fd;
}

/* The target must not be in the source, nor the source in the target. */
static int check_apart(const struct recode_job *j, struct error *err)
{
	char source[PATH_MAX], target[PATH_MAX];
	int rc = path_of_fd(j->source_fd, source);

	if (rc == 0)
		rc = path_of_fd(j->target_fd, target);
	if (rc < 0)
		return error_set(err, rc, "cannot compare the paths: %m");
	if (!path_is_inside(target, source) && !path_is_inside(source, target))
		return 0;
	return error_set(err, -EINVAL,
		"'%s' and '%s' are the same directory, or one is inside the "
		"other; give a target beside the source",
		j->o->source, j->o->target);
}

static int open_dirs(struct recode_job *j, struct error *err)
{
	j->source_fd = open_directory(j->o->source, err);
	if (j->source_fd < 0)
		return j->source_fd;
	if (mkdir(j->o->target, 0755) < 0 && errno != EEXIST)
		return error_set(
			err, -errno, "cannot create '%s': %m", j->o->target);
	j->target_fd = open_directory(j->o->target, err);
	return j->target_fd < 0 ? j->target_fd : check_apart(j, err);
}

/* A directory without files can be a class, too, so all are made. */
static int make_dirs(struct recode_job *j, struct error *err)
{
	const size_t *dir = array_data(&j->list.dirs);
	size_t n = array_count(&j->list.dirs, sizeof(*dir));
	const char *text = array_data(&j->list.text);

	if (j->o->shard_bytes)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (mkdirat(j->target_fd, text + dir[i], 0755) < 0 &&
			errno != EEXIST)
			return error_set(err, -errno,
				"cannot create '%s/%s': %m", j->o->target,
				text + dir[i]);
	return 0;
}

/* -- Units ----------------------------------------------------------------- */

/* The part of a name that makes it a member of an example in a tar: all up to
 * the first dot after the last slash. */
static size_t stem_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	return (size_t)(base - path) + strcspn(base, ".");
}

static bool same_stem(const char *a, const char *b)
{
	size_t n = stem_bytes(a);

	return n == stem_bytes(b) && memcmp(a, b, n) == 0;
}

/* Would the unit be full before file i? A shard does not part the members of an
 * example. */
static bool unit_is_full(
	const struct recode_job *j, const struct recode_unit *u, size_t i)
{
	if (u->count == 0)
		return false;
	if (!j->o->shard_bytes)
		return true;
	return u->source_bytes + recode_list_file(&j->list, i)->bytes >
		j->o->shard_bytes &&
		!same_stem(recode_list_path(&j->list, i - 1),
			recode_list_path(&j->list, i));
}

static int set_key(
	const struct recode_job *j, struct recode_unit *u, const char *name)
{
	struct hash_stream *h = hash_stream_new();

	if (!h)
		return -ENOMEM;
	hash_stream_add(h, name, strlen(name) + 1);
	for (size_t i = u->first; i < u->first + u->count; i++) {
		const struct recode_file *f = recode_list_file(&j->list, i);
		const char *path = recode_list_path(&j->list, i);

		hash_stream_add(h, path, strlen(path) + 1);
		hash_stream_add(h, &f->bytes, sizeof(f->bytes));
		hash_stream_add(h, &f->mtime_ns, sizeof(f->mtime_ns));
	}
	u->key = hash_stream_value(h);
	hash_stream_free(h);
	return 0;
}

static int divide(struct recode_job *j)
{
	size_t n = recode_list_count(&j->list);
	struct recode_unit *u = j->units = calloc(n, sizeof(*u));
	char name[PATH_MAX];
	int rc = 0;

	if (!u)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (unit_is_full(j, u, i))
			*++u = (struct recode_unit){.first = i};
		u->count++;
		u->source_bytes += recode_list_file(&j->list, i)->bytes;
	}
	j->unit_count = (size_t)(u - j->units) + 1;
	for (size_t i = 0; rc == 0 && i < j->unit_count; i++) {
		recode_unit_name(j, &j->units[i], name);
		rc = set_key(j, &j->units[i], name);
	}
	return rc;
}

/* In a tar, two images whose names are equal up to the first dot would be one
 * example. */
static int check_stems(const struct recode_job *j, struct error *err)
{
	for (size_t i = 1; i < recode_list_count(&j->list); i++) {
		const char *a = recode_list_path(&j->list, i - 1);
		const char *b = recode_list_path(&j->list, i);
		const char *end = strrchr(b, '.');

		if (!j->o->shard_bytes || !same_stem(a, b) || !end ||
			!strrchr(a, '.') ||
			strcasecmp(strrchr(a, '.'), end) != 0)
			continue;
		return error_set(err, -EINVAL,
			"'%s' and '%s' would be one example in a tar, where a "
			"name ends at its first dot; rename them, or leave "
			"out --shards",
			a, b);
	}
	return 0;
}

/* -- Threads --------------------------------------------------------------- */

static void recode_fail(struct recode_job *j, int rc, const struct error *err)
{
	LOCK_SCOPE(&j->lock);
	if (!j->status && rc != -ECANCELED) {
		j->status = rc;
		j->first = *err;
	}
	atomic_store_explicit(&j->stop, true, memory_order_relaxed);
}

static void make_units(struct recode_worker *w)
{
	struct recode_job *j = w->j;
	struct error err = {""};
	size_t i;
	int rc;

	while (!atomic_load_explicit(&j->stop, memory_order_relaxed) &&
		(i = atomic_fetch_add_explicit(
			 &j->next, 1, memory_order_relaxed)) < j->unit_count) {
		struct recode_unit *u = &j->units[i];

		if (u->recorded) /* set before the threads started */
			continue;
		rc = recode_unit_make(w, u, &err);
		if (rc < 0)
			recode_fail(j, rc, &err);
		else
			atomic_store_explicit(
				&u->made, true, memory_order_release);
	}
}

struct recode_thread {
	struct recode_job *j;
	unsigned number;
	pthread_t id;
};

static void *recode_thread_main(void *arg)
{
	struct recode_thread *t = arg;
	struct recode_worker w;
	struct error err = {""};
	int rc = recode_worker_init(&w, t->j, t->number);

	if (rc < 0)
		recode_fail(t->j, rc, (error_set(&err, rc, "%m"), &err));
	else
		make_units(&w);
	recode_worker_release(&w);
	(void)atomic_fetch_sub_explicit(
		&t->j->running, 1, memory_order_release);
	return NULL;
}

/* Keep the record and show the progress, until all threads have ended. */
static void attend(struct recode_job *j)
{
	const struct timespec tick = {.tv_nsec = SHOW_NS};
	uint64_t recorded_ns = clock_now_ns();
	struct error err = {""};

	while (atomic_load_explicit(&j->running, memory_order_acquire) > 0) {
		(void)nanosleep(&tick, NULL); /* early is no harm */
		if (j->o->show)
			j->o->show(j->o->arg,
				atomic_load_explicit(
					&j->files, memory_order_relaxed),
				atomic_load_explicit(
					&j->bytes, memory_order_relaxed),
				j->list.bytes);
		if (clock_now_ns() - recorded_ns < RECORD_NS)
			continue;
		if (record_append(j, &err) < 0)
			recode_fail(j, -EIO, &err);
		recorded_ns = clock_now_ns();
	}
}

static unsigned recode_thread_count(const struct recode_job *j)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = j->o->threads ? j->o->threads : cpus < 1 ? 1 : (size_t)cpus;

	if (n > RECODE_THREADS_MAX)
		n = RECODE_THREADS_MAX;
	return (unsigned)(n < j->unit_count ? n : j->unit_count);
}

static int make_all(struct recode_job *j, struct error *err)
{
	struct recode_thread threads[RECODE_THREADS_MAX];
	unsigned want = recode_thread_count(j), n = 0;
	int rc = 0;

	atomic_store(&j->running, want);
	for (; n < want && rc == 0; n++) {
		threads[n] = (struct recode_thread){.j = j, .number = n};
		rc = -pthread_create(
			&threads[n].id, NULL, recode_thread_main, &threads[n]);
	}
	if (rc < 0) {
		n--; /* the last one did not start; the others do its work */
		(void)atomic_fetch_sub(&j->running, want - n);
	}
	attend(j);
	for (unsigned i = 0; i < n; i++)
		/* cannot fail: the thread is joinable */
		(void)pthread_join(threads[i].id, NULL);
	if (n == 0)
		return error_set(err, rc, "cannot start a thread: %m");
	rc = record_append(j, err);
	if (j->status < 0)
		*err = j->first;
	return j->status < 0 ? j->status : rc;
}

/* -- A run ----------------------------------------------------------------- */

/* Count what an earlier run has made. Returns the number of units to make. */
static size_t count_missing(struct recode_job *j)
{
	size_t missing = 0;

	for (size_t i = 0; i < j->unit_count; i++) {
		struct recode_unit *u = &j->units[i];

		if (!u->recorded) {
			missing++;
			continue;
		}
		(void)atomic_fetch_add(&j->files, u->count);
		(void)atomic_fetch_add(&j->bytes, u->source_bytes);
	}
	return missing;
}

static void sum_counts(const struct recode_job *j, struct recode_result *r)
{
	struct recode_counts *c = &r->counts;

	for (size_t i = 0; i < j->unit_count; i++) {
		const struct recode_counts *u = &j->units[i].counts;

		c->recoded += u->recoded;
		c->kept += u->kept;
		c->odd += u->odd;
		c->other += u->other;
		c->bytes += u->bytes;
	}
	r->source_bytes = j->list.bytes;
	r->links = j->list.links;
	memcpy(r->first_odd, j->first_odd, sizeof(r->first_odd));
}

static int recode_prepare(
	struct recode_job *j, struct recode_result *r, struct error *err)
{
	int rc = open_dirs(j, err);

	if (rc == 0)
		rc = set_rendition(j, r, err);
	if (rc == 0)
		rc = recode_list_make(&j->list, j->o->source, err);
	if (rc == 0)
		rc = check_stems(j, err);
	if (rc == 0 && divide(j) < 0)
		rc = error_set(err, -ENOMEM, "%m");
	return rc == 0 ? record_load(j, err) : rc;
}

/* Make the missing units, and write the record and the report. */
static int make_missing(
	struct recode_job *j, struct recode_result *r, struct error *err)
{
	int rc;

	/* The first line of the record, before anything else. */
	rc = record_finish(j, err);
	/* A report is there only while it is true. */
	if (rc == 0 && unlinkat(j->target_fd, RENDITION_FILE, 0) < 0 &&
		errno != ENOENT)
		rc = error_set(err, -errno, "cannot replace '%s/%s': %m",
			j->o->target, RENDITION_FILE);
	if (rc == 0)
		rc = make_dirs(j, err);
	if (rc == 0)
		rc = make_all(j, err);
	if (rc == 0)
		rc = record_finish(j, err);
	sum_counts(j, r);
	if (rc == 0 && j->o->form.form == TRANSCODE_QUALITY)
		rc = recode_measure(j, &r->sample, err);
	if (rc == 0 && j->o->form.form == TRANSCODE_PROGRESSIVE &&
		!j->o->shard_bytes)
		rc = recode_index(j, err);
	return rc == 0 ? recode_report(j, r, err) : rc;
}

int recode_run(const struct recode_options *o, struct recode_result *result,
	struct error *err)
{
	struct recode_job j = {.o = o,
		.source_fd = -1,
		.target_fd = -1,
		.lock = LOCK_INIT(RANK_RECODE)};
	int rc;

	*result = (struct recode_result){0};
	describe(o, true, j.settings);
	describe(o, false, j.mark);
	rc = recode_prepare(&j, result, err);
	if (rc == 0) {
		result->made = count_missing(&j);
		if (result->made > 0 ||
			faccessat(j.target_fd, RENDITION_FILE, F_OK, 0) < 0)
			rc = make_missing(&j, result, err);
		else
			sum_counts(&j, result);
	}
	free(j.units);
	recode_list_release(&j.list);
	if (j.source_fd >= 0)
		(void)close(j.source_fd); /* a directory */
	if (j.target_fd >= 0)
		(void)close(j.target_fd); /* a directory */
	return rc;
}

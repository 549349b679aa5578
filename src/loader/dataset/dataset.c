/* SPDX-License-Identifier: MIT */
/*
 * Opens a dataset. A thread, the driver, finds out what the path is and then
 * maps a catalogue or scans the dataset. Meanwhile the caller waits until the
 * driver has finished, the open is cancelled, or the storage has not answered
 * for too long. If the driver hangs, the caller returns without it. The driver
 * then owns all memory that it can access, and frees that memory if it ever
 * continues.
 */
#include "common/base/lock.h"
#include "loader/dataset/dataset_catalogue_impl.h"
#include "loader/dataset/dataset_look_impl.h"
#include "loader/dataset/dataset_members_impl.h"
#include "loader/dataset/dataset_several_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/magic.h"
#include "common/format/rendition.h"
#include "refrain/loader.h"

#define CANCEL_POLL_NS (20 * NS_PER_MS)
/* Time to wait for a driver that was told to stop */
#define CANCEL_WAIT_NS (300 * NS_PER_MS)
/* Time to wait for idle threads */
#define IDLE_WAIT_NS (60 * NS_PER_S)
#define RAW_LABEL_MAX 8

/* -- The kind of dataset (driver) ------------------------------------------ */

struct kinds {
	bool tars, dirs;
};

static int kind_seen(void *arg, const char *name, enum look_type type)
{
	struct kinds *k = arg;
	size_t n = strlen(name);

	if (look_is_hidden(name))
		return 0;
	k->dirs |= type == LOOK_DIR;
	k->tars |=
		type == LOOK_FILE && n > 4 && strcmp(name + n - 4, ".tar") == 0;
	return k->dirs; /* one directory decides the kind, so stop listing */
}

static int choose_dir(struct look *l)
{
	int fd = openat(l->ds->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kinds k = {false, false};
	int rc = fd < 0 ? -errno : look_list(l, fd, kind_seen, &k);

	if (rc < 0)
		return look_fail(l, rc, "cannot list '%s': %m", l->path);
	return k.tars && !k.dirs ? REFRAIN_SOURCE_TAR : REFRAIN_SOURCE_FOLDER;
}

static int choose(struct look *l, const struct stat *st)
{
	size_t n = strlen(l->real);

	if (l->source != REFRAIN_SOURCE_AUTO)
		return l->source;
	if (S_ISDIR(st->st_mode))
		return choose_dir(l);
	return n > 4 && strcmp(l->real + n - 4, ".tar") == 0
		? REFRAIN_SOURCE_TAR
		: REFRAIN_SOURCE_LIST;
}

static int check_source(struct look *l, int source, const struct stat *st)
{
	bool dir = S_ISDIR(st->st_mode);

	if (source == REFRAIN_SOURCE_FOLDER && !dir)
		return look_fail(l, -ENOTDIR,
			"'%s' is not a directory; a folder of images must be "
			"one",
			l->path);
	if (source == REFRAIN_SOURCE_LIST && dir)
		return look_fail(l, -EINVAL,
			"'%s' is a directory; a list must be a file", l->path);
	if (!dir && !S_ISREG(st->st_mode))
		return look_fail(l, -EINVAL,
			"'%s' is neither a directory nor a regular file",
			l->path);
	return 0;
}

/* -- The directory to which paths are relative (driver) ---------------------
 */

static int open_dir(struct look *l, const char *path)
{
	l->ds->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->ds->dir < 0)
		return look_fail(l, -errno, "cannot open '%s': %m", path);
	return 0;
}

/* Open the parent directory of the file l->real. */
static int open_parent(struct look *l)
{
	const char *slash = strrchr(l->real, '/');
	size_t n = slash > l->real ? (size_t)(slash - l->real) : 1;
	CLEANUP_FREE char *parent = strndup(l->real, n);

	return parent ? open_dir(l, parent) : look_fail(l, -ENOMEM, "%m");
}

static int open_root(struct look *l)
{
	l->real_root = realpath(l->root, NULL);
	if (!l->real_root)
		return look_fail(l, -errno, "cannot open '%s': %m", l->root);
	return open_dir(l, l->real_root);
}

/* Add the file as the only shard of the dataset. */
static int add_alone(struct look *l)
{
	if (ds_add_shard(l->ds, strrchr(l->real, '/') + 1, 0) < 0)
		return look_fail(l, -ENOMEM, "%m");
	return 0;
}

/* Note the mtime of the directory before it is read, so that a change during
 * the scan is noticed at the next open. */
static int watch_root(struct look *l)
{
	struct stat st;

	if (fstat(l->ds->dir, &st) < 0)
		return look_fail(l, -errno, "cannot look at '%s': %m", l->path);
	if (ds_add_watch(
		    l->ds, ".", stat_mtime_ns(&st), stat_fingerprint(&st)) < 0)
		return look_fail(l, -ENOMEM, "%m");
	return 0;
}

/* -- Look (driver) --------------------------------------------------------- */

static int look_at(struct look *l, int source)
{
	switch (source) {
	case REFRAIN_SOURCE_FOLDER:
		look_doing(l, "listing its directories");
		return look_folder(l);
	case REFRAIN_SOURCE_LIST:
		look_doing(l, "reading the list");
		return look_list_file(l);
	case REFRAIN_SOURCE_TAR:
		look_doing(l, "reading the headers of its tar files");
		return look_tar(l);
	default:
		look_doing(l, "examining its record files");
		if (l->volumes)
			return look_arrays(l);
		return l->tokens ? look_tokens(l) : look_raw(l);
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcasecmp(text + n - m, end) == 0;
}

static bool is_archive(const char *name)
{
	static const char *const ends[] = {
		".tar", ".tgz", ".zip", ".gz", ".bz2", ".xz", ".zst", ".7z"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_with(name, ends[i]))
			return true;
	return false;
}

/* Returns advice for an error message about files that are not examples: how to
 * use them. */
static const char *advice(const struct look *l, int source)
{
	if (is_archive(l->first_skipped))
		return "; unpack archives, but keep .tar files of examples in "
		       "a directory of their own";
	if (l->volumes)
		return "";
	if (l->tokens)
		return "; a window must fit into a file .bin or .npy: see the "
		       "option 'length' of tokens";
	if (l->any_file)
		return "";
	return source == REFRAIN_SOURCE_FOLDER
		? "; a decode callback reads other formats, and source raw "
		  "reads records"
		: "; a decode callback reads other formats";
}

static int no_example(struct look *l, int source)
{
	bool folder = source == REFRAIN_SOURCE_FOLDER;
	const char *kind = folder ? "JPEG or PNG" : "JPEG";
	const char *where = folder ? "below" : "in";

	if (l->skipped > 0 && l->skipped == dataset_links(l->ds))
		return look_fail(l, -ENODATA,
			"no examples in '%s': its %llu symbolic links are "
			"broken",
			l->path, (unsigned long long)dataset_links(l->ds));
	if (l->any_file)
		kind = "file";
	if (source == REFRAIN_SOURCE_TAR && dataset_shards(l->ds) == 0)
		kind = ".tar file";
	if (source == REFRAIN_SOURCE_RAW)
		kind = l->tokens     ? "window of tokens"
			: l->volumes ? "array"
				     : "record";
	if (l->skipped > 0)
		return look_fail(l, -ENODATA,
			"no %s %s '%s': %llu file%s skipped, the first is "
			"'%s'%s",
			kind, where, l->path, (unsigned long long)l->skipped,
			l->skipped > 1 ? "s" : "", l->first_skipped,
			advice(l, source));
	return look_fail(
		l, -ENODATA, "no example in '%s': it is empty", l->path);
}

/* Magic numbers of files that users pass instead of a list by mistake. Without
 * this check the message would only say that a line is malformed. */
struct other_kind {
	const char *bytes;
	uint16_t at, n; /* position and number of the magic bytes */
	bool image;
	const char *what, *advice;
};

#define ARCHIVE "unpack it, and give the directory or the plain .tar file"

static const struct other_kind magics[] = {
	{"\xff\xd8\xff", 0, 3, true, "a single image", NULL},
	{"\x89PNG", 0, 4, true, "a single PNG image", NULL},
	{"GIF8", 0, 4, true, "a single GIF image", NULL},
	{"WEBPVP8", 8, 7, true, "a single WebP image", NULL},
	{"\x1f\x8b", 0, 2, false, "compressed by gzip", ARCHIVE},
	{"\xfd\x37zXZ", 0, 5, false, "compressed by xz", ARCHIVE},
	{"\x28\xb5\x2f\xfd", 0, 4, false, "compressed by zstd", ARCHIVE},
	{"BZh", 0, 3, false, "compressed by bzip2", ARCHIVE},
	{"PK\3\4", 0, 4, false, "a zip archive", ARCHIVE},
	{"ustar", 257, 5, false, "a tar file",
		"set source to tar, or let its name end in .tar"},
};

#define MAGIC_BYTES 264

static int refuse_other(struct look *l)
{
	CLEANUP_FD int fd = open(l->real, O_RDONLY | O_CLOEXEC);
	char head[MAGIC_BYTES];
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));

	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++) {
		const struct other_kind *m = &magics[i];

		if (n < m->at + m->n ||
			memcmp(head + m->at, m->bytes, m->n) != 0)
			continue;
		return look_fail(l, -EINVAL, "'%s' is %s; %s", l->path, m->what,
			m->image ? "give its directory, or a list of paths"
				 : m->advice);
	}
	return 0;
}

static int look_anew(struct look *l, const struct stat *st)
{
	int rc = S_ISDIR(st->st_mode) ? watch_root(l) : 0;
	int source;

	look_doing(l, "finding out its kind");
	source = rc < 0 ? rc : choose(l, st);
	if (source < 0)
		return source;
	rc = check_source(l, source, st);
	if (rc == 0 && source == REFRAIN_SOURCE_LIST)
		rc = refuse_other(l);
	if (rc == 0 && !S_ISDIR(st->st_mode) && source != REFRAIN_SOURCE_LIST)
		rc = add_alone(l);
	if (rc == 0)
		rc = look_at(l, source);
	if (rc == 0)
		rc = ds_set_skipped(l->ds, l->skipped, l->first_skipped);
	if (rc < 0)
		return look_fail(l, rc, "cannot look at '%s': %m", l->path);
	ds_finish(l->ds);
	if (l->ds->count == 0)
		return no_example(l, source);
	rc = ds_members_check(l);
	if (rc < 0)
		return rc;
	look_doing(l, "writing its catalogue to the cache directory");
	ds_catalogue_keep(l);
	return 0;
}

/* Open the directory to which the paths of the examples are relative. */
static int open_base(struct look *l, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return open_dir(l, l->real);
	if (l->root && choose(l, st) == REFRAIN_SOURCE_LIST)
		return open_root(l);
	return open_parent(l);
}

static void note_fs_type(struct dataset *ds)
{
	struct statfs fs;

	if (fstatfs(ds->dir, &fs) == 0)
		ds->fs_type = (uint32_t)fs.f_type;
}

/* Read how the images differ from the originals. */
static int look_rendition(struct look *l)
{
	char text[RENDITION_MAX];
	int rc;

	look_doing(l, "reading " RENDITION_FILE);
	rc = rendition_read(l->ds->dir, text);
	if (rc < 0)
		return look_fail(l, rc,
			"cannot read '" RENDITION_FILE "' of '%s': %m",
			l->path);
	ds_set_rendition(l->ds, text);
	return 0;
}

static int find(struct look *l)
{
	struct stat st;
	int rc;

	look_doing(l, "resolving its path");
	l->real = realpath(l->path, NULL);
	if (!l->real || stat(l->real, &st) < 0)
		return look_fail(l, -errno, "cannot open '%s': %m", l->path);
	rc = open_base(l, &st);
	if (rc < 0)
		return rc;
	note_fs_type(l->ds);
	look_doing(l, "comparing it with its catalogue");
	/* both replace the whole struct dataset, so the rendition comes last */
	rc = ds_catalogue_open(l) < 0 ? look_anew(l, &st) : 0;
	return rc < 0 ? rc : look_rendition(l);
}

static void look_free(struct look *l)
{
	dataset_close(l->ds);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l->cache_dir);
	free(l->path);
	free(l->root);
	free(l->real);
	free(l->real_root);
	free(l->first_skipped);
	free(l->members);
	free(l->members_text);
	MAGIC_END(l);
	free(l);
}

static void *driver_main(void *arg)
{
	struct look *l = OBJECT(look, arg);
	int rc = find(l);
	bool abandoned;

	/* All jobs have ended, so this does not wait for the threads. */
	(void)thread_pool_free(l->workers, IDLE_WAIT_NS);
	l->workers = NULL;
	if (rc < 0)
		(void)look_fail(l, rc, "cannot open '%s': %m", l->path);
	pthread_mutex_lock(&l->lock);
	l->done = true;
	pthread_cond_broadcast(&l->changed);
	abandoned = l->abandoned;
	pthread_mutex_unlock(&l->lock);
	if (abandoned)
		look_free(l);
	return NULL;
}

/* -- The caller of dataset_open() -------------------------------------- */

/* Returns the path BASE/MIDDLErefrain, which the caller must free(), or
 * NULL. */
static char *below(const char *base, const char *middle)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%srefrain", base, middle) < 0)
		return NULL;
	return path;
}

/* Returns the directory for catalogues, or NULL if there is none or memory has
 * run out: then no catalogue is used. The environment is read on the caller's
 * thread, because the program may change it after dataset_open(). */
static char *cache_dir(void)
{
	const char *xdg = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");

	if (xdg && xdg[0] == '/')
		return below(xdg, "");
	if (home && home[0] == '/')
		return below(home, ".cache/");
	return NULL;
}

static int64_t real_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec;
}

/* Create a look. On success it owns `members`. */
static struct look *look_new(
	const struct dataset_options *o, struct ds_members *members)
{
	struct look *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	MAGIC_BEGIN(l, look);
	lock_init(&l->lock, RANK_LOOK);
	cond_init(&l->changed);
	atomic_init(&l->doing, "starting a thread");
	l->path = strdup(o->path);
	l->root = o->root ? strdup(o->root) : NULL;
	l->members_text = o->members ? strdup(o->members) : NULL;
	l->cache_dir = cache_dir();
	l->source = o->source;
	l->record_bytes = o->record_bytes;
	l->label_bytes = o->label_bytes;
	l->volumes = o->arrays != NULL;
	if (o->arrays)
		l->arrays = *o->arrays;
	l->tokens = o->windows != NULL;
	if (o->windows)
		l->windows = *o->windows;
	l->any_file = o->any_file;
	l->threads = o->threads;
	l->start_ns = real_now_ns();
	l->ds = calloc(1, sizeof(*l->ds));
	if (l->ds) {
		l->ds->dir = -1;
		l->ds->members = members ? members->count : 0;
	}
	if (l->path && l->ds && (l->root || !o->root) &&
		(l->members_text || !o->members)) {
		l->members = members;
		return l;
	}
	look_free(l);
	return NULL;
}

static bool cancelled(const struct dataset_options *o)
{
	return o->cancel &&
		atomic_load_explicit(o->cancel, memory_order_relaxed);
}

static bool wait_until(struct look *l, uint64_t until_ns)
{
	while (!l->done)
		if (!cond_wait_until(&l->changed, &l->lock, until_ns))
			break;
	return l->done;
}

/* The caller's record of the storage's progress: the last count of answers, and
 * the time at which that count last changed. */
struct patience {
	uint64_t answers, since_ns;
};

/* Has the storage answered no call for timeout_ns? */
static bool is_late(
	struct look *l, const struct dataset_options *o, struct patience *p)
{
	uint64_t answers =
		atomic_load_explicit(&l->answers, memory_order_relaxed);
	uint64_t now_ns = clock_now_ns();

	if (answers != p->answers)
		*p = (struct patience){answers, now_ns};
	return o->timeout_ns && now_ns - p->since_ns >= o->timeout_ns;
}

static int say_late(struct look *l, uint64_t silent_ns, struct error *err)
{
	return error_set(err, -ETIMEDOUT,
		"opening '%s': no answer for %.1f s while %s", l->path,
		(double)silent_ns / 1e9,
		atomic_load_explicit(&l->doing, memory_order_relaxed));
}

/*
 * Wait for the driver. Returns 0 when it has finished. If the wait is cancelled
 * or times out, this tells the driver to stop and returns -errno. If the driver
 * does not stop in time, *left is set, and the driver owns the look from then
 * on.
 */
static int wait_for_driver(struct look *l, const struct dataset_options *o,
	bool *left, struct error *err)
{
	struct patience p = {0, clock_now_ns()};
	int rc;

	LOCK_SCOPE(&l->lock);
	*left = false;
	while (!cancelled(o) && !is_late(l, o, &p))
		if (wait_until(l, clock_now_ns() + CANCEL_POLL_NS))
			return 0;
	if (cancelled(o))
		rc = error_set(err, -ECANCELED, "opening '%s': %m", o->path);
	else
		rc = say_late(l, clock_now_ns() - p.since_ns, err);
	atomic_store_explicit(&l->stop, true, memory_order_relaxed);
	*left = !wait_until(l, clock_now_ns() + CANCEL_WAIT_NS);
	l->abandoned = *left;
	return rc;
}

/* Start the driver with all signals blocked, so that the program's own threads
 * handle them. The workers inherit this mask. */
static int start_driver(struct look *l, pthread_t *thread)
{
	sigset_t all, old;
	int rc;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, driver_main, l);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static int take_result(struct dataset **out, struct look *l, struct error *err)
{
	if (l->status < 0)
		return error_set(err, l->status, "%s", l->err.msg);
	*out = steal_ptr(&l->ds);
	return 0;
}

static int run(struct dataset **out, struct look *l,
	const struct dataset_options *o, struct error *err)
{
	pthread_t thread;
	bool left;
	int rc = start_driver(l, &thread);

	if (rc < 0) {
		look_free(l);
		return error_set(err, rc, "cannot start a thread: %m");
	}
	rc = wait_for_driver(l, o, &left, err);
	if (left) {
		(void)pthread_detach(thread);
		return rc;
	}
	(void)pthread_join(thread, NULL);
	if (rc == 0)
		rc = take_result(out, l, err);
	look_free(l);
	return rc;
}

/* Does the path begin like a URL: a scheme without '/' or ':', then "://"? */
static bool is_url(const char *path)
{
	size_t n = strcspn(path, ":/");

	return n > 0 && strncmp(path + n, "://", 3) == 0;
}

static int check_options(const struct dataset_options *o, struct error *err)
{
	if (!o->path || o->path[0] == '\0')
		return error_set(err, -EINVAL, "no dataset is given");
	/* The URL may contain a password, so the message does not repeat it. */
	if (is_url(o->path))
		return error_set(err, -EINVAL,
			"a dataset cannot be a URL: mount it with 'refrain "
			"mount', and name a directory of the mount");
	if (o->source < REFRAIN_SOURCE_AUTO || o->source > REFRAIN_SOURCE_RAW)
		return error_set(
			err, -EINVAL, "unknown source kind %d", o->source);
	if (o->source != REFRAIN_SOURCE_RAW)
		return 0;
	if (o->members)
		return error_set(err, -EINVAL,
			"examples of raw records have no members");
	if (o->windows || o->arrays)
		return 0;
	if (o->label_bytes > RAW_LABEL_MAX)
		return error_set(err, -EINVAL,
			"label_bytes is %u; it must be at most 8",
			o->label_bytes);
	if (o->record_bytes <= o->label_bytes)
		return error_set(err, -EINVAL,
			"record_bytes is %u; it must be more than label_bytes, "
			"%u",
			o->record_bytes, o->label_bytes);
	return 0;
}

/* The caller's thread reads the annotations, because that may take longer than
 * timeout_ns without an answer of the dataset's storage. */
static int open_annotations(
	struct dataset *ds, const char *path, struct error *err)
{
	CLEANUP_FREE char *dir = cache_dir();

	return ds_annotations_open(ds, path, dir, err);
}

int ds_open_one(struct dataset **out, const struct dataset_options *options,
	struct error *err)
{
	CLEANUP_FREE struct ds_members *members = NULL;
	struct look *l;
	int rc = check_options(options, err);

	*out = NULL;
	if (rc == 0 && options->members)
		rc = ds_members_parse(&members, options->members, err);
	if (rc < 0)
		return rc;
	l = look_new(options, members);
	if (!l)
		return error_set(err, -ENOMEM, "%m");
	(void)steal_ptr(&members);
	rc = run(out, l, options, err);
	if (rc == 0 && options->annotations)
		rc = open_annotations(*out, options->annotations, err);
	if (rc < 0) {
		dataset_close(*out);
		*out = NULL;
	}
	return rc;
}

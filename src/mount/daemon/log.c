/* SPDX-License-Identifier: MIT */
/*
 * The queue of the log, its thread, and the destinations of lines. Any thread
 * may report an event with any lock held, so log.lock is taken after all other
 * locks. Only the thread of the log writes to files; it does so without the
 * lock.
 */
#include "mount/daemon/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "mount/daemon/log_cause_impl.h"

/* Maximum number of queued events. Further events are counted as suppressed. */
#define QUEUE_MAX 64u

/* Maximum time to wait for a log file that does not accept writes. */
#define FLUSH_NS NS_PER_S

struct log {
	uint32_t magic;
	/* The members up to `started` are set once. */
	struct event_sink sink;
	enum event_level level;
	bool json, journal;
	/* Absolute path of the log file, or NULL */
	char *mountpoint, *path;
	pthread_t thread;
	bool started;

	/* The log file, or -1. Once the thread has started, only the thread
	 * uses it */
	int fd;
	/* A duplicate of the standard error with which the process was started;
	 * or -1. The process replaces its own standard error while it mounts
	 * and unmounts; see log_detach(). */
	int err_fd;

	/* Taken after all other locks; guards all members below */
	pthread_mutex_t lock;
	pthread_cond_t work; /* the thread waits here */
	/* Signalled when the thread has nothing left to write */
	pthread_cond_t idle;
	struct log_causes causes;
	struct log_record queue[QUEUE_MAX];
	/* The queued events are first, first + 1, ... first + n - 1 */
	unsigned first, n;
	bool detached; /* log_detach() was called */
	bool reopen, flush, stop;
	bool writing; /* the thread is writing, without the lock */
};

static uint64_t wall_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void enqueue(struct log *log, const struct log_record *r)
{
	ASSERT_HELD(&log->lock);
	log->queue[(log->first + log->n) % QUEUE_MAX] = *r;
	log->n++;
	pthread_cond_signal(&log->work);
}

/* Queue the event, or count it as suppressed. */
static void log_take(
	struct log *log, const struct event *e, const struct log_record *r)
{
	size_t i = e->turn ? LIMIT_TURN : LIMIT_USUAL;
	uint64_t now_ns = clock_now_ns();
	struct log_limit *l =
		&log_cause_note(&log->causes, e, r, now_ns)->limit[i];

	ASSERT_HELD(&log->lock);
	if (event_table[e->kind].level > log->level)
		return;
	if (log->n < QUEUE_MAX &&
		log_limit_take(l, log_cause_refill_ns(i), now_ns, r->wall_ns)) {
		enqueue(log, r);
		return;
	}
	if (log->n == QUEUE_MAX && l->suppressed++ == 0)
		l->since_ns = r->wall_ns;
	/* Wake the thread, so that it computes again when the next summary is
	 * due. */
	if (l->suppressed == 1)
		pthread_cond_signal(&log->work);
}

static void log_event(void *arg, const struct event *e)
{
	struct log *log = OBJECT(log, arg);
	struct log_record r;
	int saved = errno;

	log_record_fill(&r, e);
	r.wall_ns = wall_now_ns();
	pthread_mutex_lock(&log->lock);
	log_take(log, e, &r);
	pthread_mutex_unlock(&log->lock);
	errno = saved;
}

/* Is standard error connected to the journal? See JOURNAL_STREAM in
 * systemd.exec(5). */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%ju:%ju", &dev, &ino) == 2 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
		st.st_ino == ino;
}

/* Open the log file. O_NONBLOCK, because the path may belong to a FIFO without
 * a reader. */
static int open_log(const char *path)
{
	int fd = open(path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY |
			O_NONBLOCK,
		0600);

	return fd < 0 ? -errno : fd;
}

/* Returns the absolute path, because the daemon changes its working
 * directory. */
static char *absolute_path(const char *path)
{
	CLEANUP_FREE char *cwd = NULL;
	char *full = NULL;

	if (path[0] == '/')
		return strdup(path);
	cwd = getcwd(NULL, 0);
	if (!cwd || asprintf(&full, "%s/%s", cwd, path) < 0)
		return NULL;
	return full;
}

static int open_file(struct log *log, const char *file, struct error *err)
{
	log->path = absolute_path(file);
	if (!log->path)
		return error_set(
			err, -errno, "cannot open log file '%s': %m", file);
	log->fd = open_log(log->path);
	if (log->fd < 0)
		return error_set(err, log->fd,
			"cannot open log file '%s': %m; choose one in a "
			"directory that you can write to",
			file);
	return 0;
}

int log_new(
	struct log **out, const struct log_config *config, struct error *err)
{
	struct log *log = calloc(1, sizeof(*log));
	int rc = 0;

	if (!log)
		return error_set(err, -ENOMEM, "cannot open the log: %m");
	MAGIC_BEGIN(log, log);
	log->sink = (struct event_sink){log_event, log};
	log->level = config->level;
	log->json = config->json;
	log->journal = is_journal();
	log->fd = -1;
	log->err_fd =
		config->file ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	lock_init(&log->lock, RANK_LOG);
	cond_init(&log->work);
	cond_init(&log->idle);
	log->mountpoint = strdup(config->mountpoint);
	if (!log->mountpoint)
		rc = error_set(err, -ENOMEM, "cannot open the log: %m");
	if (rc == 0 && config->file)
		rc = open_file(log, config->file, err);
	if (rc < 0) {
		log_free(log);
		return rc;
	}
	*out = log;
	return 0;
}

void log_each(struct log *log, log_each_fn *fn, void *arg)
{
	LOCK_SCOPE(&log->lock);
	for (size_t i = 0; i < LOG_CAUSES_ALL; i++) {
		const struct log_cause *c = log_cause_at(&log->causes, i);
		struct log_last last = {
			.kind = c->last.kind,
			.message = c->last.message,
			.dir = c->last.dir,
			.status = c->last.status,
			.wall_ns = c->last.wall_ns,
			.time_ns = c->last_ns,
			.events = c->events,
		};

		if (c->last_ns)
			fn(arg, &last);
	}
}

const struct event_sink *log_sink(struct log *log)
{
	return &log->sink;
}

/* -- The thread ------------------------------------------------------------ */

/* Write a line. If the write fails, the line is lost, and the failure cannot be
 * reported. */
static void write_line(int fd, const char *line, size_t n)
{
	while (write(fd, line, n) < 0 && errno == EINTR)
		;
}

static void write_record(
	struct log *log, const struct log_record *r, bool detached)
{
	enum log_style style = log->journal ? LINE_JOURNAL : LINE_STDERR;
	char line[LOG_LINE_MAX];
	size_t n;

	if (log->fd >= 0) {
		n = log_line(line, r, LINE_FILE, log->json, log->mountpoint);
		write_line(log->fd, line, n);
	} else if (detached) {
		n = log_line(line, r, LINE_SYSLOG, log->json, log->mountpoint);
		syslog(log_priority(r->kind), "%.*s", (int)n, line);
	} else {
		n = log_line(line, r, style, log->json, log->mountpoint);
		write_line(log->err_fd, line, n);
	}
}

/* Get a summary that is due, or any summary if the log is being flushed.
 * Returns false if there is none. */
static bool take_summary(struct log *log, struct log_record *r)
{
	uint64_t now_ns = clock_now_ns();

	ASSERT_HELD(&log->lock);
	for (size_t i = 0; i < LOG_CAUSES_ALL * LIMITS; i++) {
		struct log_cause *c = log_cause_at(&log->causes, i / LIMITS);
		struct log_limit *l = &c->limit[i % LIMITS];
		uint64_t refill_ns = log_cause_refill_ns(i % LIMITS);

		if (log_limit_due_ns(l, refill_ns) > now_ns &&
			!(log->flush && l->suppressed > 0))
			continue;
		*r = c->last;
		r->since_ns = l->since_ns;
		r->suppressed = log_limit_sum(l, refill_ns, now_ns);
		return true;
	}
	return false;
}

static bool take_record(struct log *log, struct log_record *r)
{
	ASSERT_HELD(&log->lock);
	if (log->n == 0)
		return take_summary(log, r);
	*r = log->queue[log->first];
	log->first = (log->first + 1) % QUEUE_MAX;
	log->n--;
	return true;
}

/* Wait for an event, for another request to the thread, or until a summary is
 * due. */
static void log_wait_for_work(struct log *log)
{
	uint64_t due_ns = UINT64_MAX;

	ASSERT_HELD(&log->lock);
	for (size_t i = 0; i < LOG_CAUSES_ALL * LIMITS; i++) {
		struct log_cause *c = log_cause_at(&log->causes, i / LIMITS);
		uint64_t at_ns = log_limit_due_ns(
			&c->limit[i % LIMITS], log_cause_refill_ns(i % LIMITS));

		due_ns = at_ns < due_ns ? at_ns : due_ns;
	}
	if (due_ns == UINT64_MAX)
		pthread_cond_wait(&log->work, &log->lock);
	else
		(void)cond_wait_until(&log->work, &log->lock, due_ns);
}

static void reopen_file(struct log *log)
{
	struct event e = {.kind = EVENT_LOG_REOPENED, .path = log->path};
	int fd = open_log(log->path);

	if (fd >= 0) {
		(void)close(log->fd); /* each line was written by one call */
		log->fd = fd;
	} else {
		e.kind = EVENT_LOG_FAILED;
		e.status = fd;
	}
	log_event(log, &e);
}

/* Write one event or summary. Returns false if there is none. Releases the lock
 * while writing. */
static bool work_once(struct log *log)
{
	bool reopen = log->reopen, detached = log->detached;
	struct log_record r;

	ASSERT_HELD(&log->lock);
	log->reopen = false;
	if (!reopen && !take_record(log, &r))
		return false;
	log->writing = true;
	pthread_mutex_unlock(&log->lock);
	if (reopen)
		reopen_file(log);
	else
		write_record(log, &r, detached);
	pthread_mutex_lock(&log->lock);
	log->writing = false;
	return true;
}

static void *log_main(void *arg)
{
	struct log *log = OBJECT(log, arg);

	pthread_mutex_lock(&log->lock);
	for (;;) {
		if (work_once(log))
			continue;
		log->flush = false;
		pthread_cond_broadcast(&log->idle);
		if (log->stop)
			break;
		log_wait_for_work(log);
	}
	pthread_mutex_unlock(&log->lock);
	return NULL;
}

int log_start(struct log *log, struct error *err)
{
	int rc = pthread_create(&log->thread, NULL, log_main, log);

	if (rc != 0)
		return error_set(err, -rc, "cannot start a thread: %m");
	log->started = true;
	return 0;
}

/* Wait until the thread has nothing left to write. Returns false if a write
 * hangs. */
static bool wait_idle(struct log *log)
{
	uint64_t until_ns = clock_now_ns() + FLUSH_NS;

	ASSERT_HELD(&log->lock);
	pthread_cond_signal(&log->work);
	while (log->writing || log->n > 0 || log->flush)
		if (!cond_wait_until(&log->idle, &log->lock, until_ns))
			return false;
	return true;
}

void log_detach(struct log *log)
{
	CLEANUP_FD int fd = -1;
	LOCK_SCOPE(&log->lock);

	if (wait_idle(log)) /* the thread is idle, so it does not use err_fd */
		fd = steal_fd(&log->err_fd);
	openlog("refrain", LOG_PID, LOG_DAEMON);
	log->detached = true;
}

bool log_reopen(struct log *log)
{
	LOCK_SCOPE(&log->lock);
	if (!log->path)
		return false;
	log->reopen = true;
	pthread_cond_signal(&log->work);
	return true;
}

void log_flush(struct log *log)
{
	if (!log->started)
		return;
	LOCK_SCOPE(&log->lock);
	log->flush = true;
	(void)wait_idle(log);
}

/* Stop the thread. Returns false if the thread hangs in a write: the log must
 * not be freed in this case. */
static bool stop_thread(struct log *log)
{
	bool idle;

	if (!log->started)
		return true;
	pthread_mutex_lock(&log->lock);
	log->flush = log->stop = true;
	idle = wait_idle(log);
	pthread_mutex_unlock(&log->lock);
	if (idle)
		/* Cannot fail: the thread is ending */
		(void)pthread_join(log->thread, NULL);
	return idle;
}

void log_free(struct log *log)
{
	if (!log || !stop_thread(log))
		return;
	if (log->err_fd >= 0)
		(void)close(log->err_fd);
	if (log->fd >= 0)
		/* Each line was written by one call */
		(void)close(log->fd);
	(void)pthread_cond_destroy(&log->work); /* no thread waits any more */
	(void)pthread_cond_destroy(&log->idle);
	(void)pthread_mutex_destroy(&log->lock);
	free(log->mountpoint);
	free(log->path);
	MAGIC_END(log);
	free(log);
}

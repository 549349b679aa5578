/* SPDX-License-Identifier: MIT */
/* The life of the FUSE session: mounts, runs a fixed number of threads that
 * read and answer requests, and unmounts. It has a loop of its own in place of
 * that of libfuse, because it must stop at once: it sends signals to threads
 * that are blocked in read(2) until the last thread has ended. */
#include "mount/fs/fs_gather_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

/* Interrupts a worker in read(2). The daemon uses the signal for nothing
 * else. */
#define WAKE_SIGNAL SIGUSR1

/* Time limit for the kernel's first request, which it sends at the mount. */
#define GREETING_NS (10 * NS_PER_S)
#define GREETING_LOOK_MS 100

/* -- Workers ------------------------------------------------------------- */

static void wait_10ms(struct fs *fs)
{
	ASSERT_HELD(&fs->lock);
	(void)cond_wait_until(
		&fs->cond, &fs->lock, clock_now_ns() + 10 * NS_PER_MS);
}

/* Wait until all workers exist, before this thread begins to serve. */
static void wait_for_all(struct fs *fs)
{
	LOCK_SCOPE(&fs->lock);
	while (!fs->complete && !atomic_load(&fs->exiting))
		pthread_cond_wait(&fs->cond, &fs->lock);
}

static void *worker_main(void *arg)
{
	struct fs *fs = OBJECT(fs, arg);
	struct fuse_buf buf = {0};
	struct fs_poll poll;

	fs_poll_init(&poll, &fs->looking);
	wait_for_all(fs);
	while (!fuse_session_exited(fs->se) && !atomic_load(&fs->exiting)) {
		ssize_t n;

		if (!buf.mem)
			buf.mem = receive_buffer_new();
		if (!buf.mem) {
			/* The other workers continue while this one waits for
			 * the lock. */
			LOCK_SCOPE(&fs->lock);
			wait_10ms(fs);
			continue;
		}
		/* The result does not matter: without a request, the worker
		 * waits in read(2). */
		(void)fs_poll(&poll, fuse_session_fd(fs->se));
		n = receive_request(fs, buf.mem);
		if (n == -EINTR)
			continue;
		if (n == -ENOMEM) {
			LOCK_SCOPE(&fs->lock);
			wait_10ms(fs);
			continue;
		}
		if (n <= 0)
			break; /* unmounted */
		buf.size = (size_t)n;
		fs_poll_asked(&poll, &buf);
		fs_process(fs, &buf);
	}
	receive_buffer_free(buf.mem);
	LOCK_SCOPE(&fs->lock);
	fs->running--;
	atomic_store(&fs->exiting, true);
	pthread_cond_broadcast(&fs->cond);
	return NULL;
}

static void fs_wake(int sig)
{
	/* the signal only has to interrupt a system call, so there is nothing
	 * to do */
	(void)sig;
}

static void install_wake(void)
{
	struct sigaction sa = {.sa_handler = fs_wake};

	(void)sigemptyset(&sa.sa_mask);
	/* Cannot fail for a valid signal */
	(void)sigaction(WAKE_SIGNAL, &sa, NULL);
}

/* Stop all workers. Send the signal again and again, because it may arrive just
 * before the read(2) that it has to interrupt. */
static void stop_workers(struct fs *fs, pthread_t *worker, unsigned n)
{
	LOCK_SCOPE(&fs->lock);
	while (fs->running > 0) {
		for (unsigned i = 0; i < n; i++)
			(void)pthread_kill(worker[i], WAKE_SIGNAL);
		wait_10ms(fs);
	}
}

static void greet_once(struct fs *fs, void *buffer)
{
	struct pollfd p = {.fd = fuse_session_fd(fs->se), .events = POLLIN};
	struct fuse_buf buf = {.mem = buffer};
	ssize_t n;

	if (poll(&p, 1, GREETING_LOOK_MS) <= 0)
		return;
	n = receive_request(fs, buffer);
	if (n == 0)
		atomic_store(&fs->exiting, true); /* unmounted */
	if (n <= 0)
		return;
	buf.size = (size_t)n;
	session_keep_init(fs->config.session, buffer, buf.size);
	fuse_session_process_buf(fs->se, &buf);
	/* The first request was not FUSE_INIT, so another program has used the
	 * connection. */
	if (!fs->greeted)
		atomic_store(&fs->exiting, true);
}

/* Answer the kernel's first request while all workers wait. If that fails, for
 * example for lack of memory, the kernel never sends another request. */
static void greet(struct fs *fs)
{
	uint64_t until_ns = clock_now_ns() + GREETING_NS;
	void *buffer = receive_buffer_new();

	while (buffer && !fs->greeted && !atomic_load(&fs->exiting) &&
		clock_now_ns() < until_ns)
		greet_once(fs, buffer);
	receive_buffer_free(buffer);
	if (!fs->greeted)
		atomic_store(&fs->exiting, true);
}

/* Continue a connection of another process, before any thread answers a
 * request. */
static void take_over(struct fs *fs)
{
	takeover_greet(fs);
	if (fs->journal)
		journal_replay(fs);
	else
		/* this fails only if the mount was unmounted */
		(void)takeover_resend(fs);
}

int fs_run(
	struct fs *fs, void (*ready)(void *arg), void *arg, struct error *err)
{
	pthread_t worker[FS_WORKERS];
	unsigned n = 0;
	int rc = 0;

	fs->ready = ready;
	fs->ready_arg = arg;
	install_wake();
	strikes_begin(fs);
	while (n < FS_WORKERS && rc == 0) {
		pthread_mutex_lock(&fs->lock);
		fs->running++;
		pthread_mutex_unlock(&fs->lock);
		rc = -pthread_create(&worker[n], NULL, worker_main, fs);
		if (rc == 0)
			n++;
	}
	if (rc == 0 && session_connection(fs->config.session) >= 0)
		take_over(fs);
	else if (rc == 0)
		greet(fs);
	pthread_mutex_lock(&fs->lock);
	if (rc < 0) {
		fs->running--;
		atomic_store(&fs->exiting, true);
	}
	fs->complete = rc == 0;
	pthread_cond_broadcast(&fs->cond);
	while (!atomic_load(&fs->exiting))
		pthread_cond_wait(&fs->cond, &fs->lock);
	pthread_mutex_unlock(&fs->lock);
	stop_workers(fs, worker, n);
	while (n > 0)
		pthread_join(worker[--n], NULL);
	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	if (!fs->greeted && fs_given_connection(fs->config.mountpoint) >= 0)
		return error_set(err, -EIO,
			"cannot serve '%s': it is not mounted, or another "
			"process has served it before; mount again",
			fs->config.mountpoint);
	return 0;
}

void fs_exit(struct fs *fs)
{
	LOCK_SCOPE(&fs->lock);
	atomic_store(&fs->exiting, true);
	pthread_cond_broadcast(&fs->cond);
}

/* -- Mounting ------------------------------------------------------------ */

/* Libfuse prints messages to standard error. They are captured and added to the
 * error message. */
struct capture {
	int memfd, saved;
};

static void capture_begin(struct capture *c)
{
	c->saved = -1;
	c->memfd = memfd_create("messages", MFD_CLOEXEC);
	if (c->memfd < 0)
		return;
	(void)fflush(stderr);
	c->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (c->saved >= 0)
		(void)dup2(c->memfd, STDERR_FILENO);
}

/* End the capture. `text` gets the first line of libfuse's messages, without
 * its newline. */
static void capture_end(struct capture *c, char *text, size_t size)
{
	ssize_t n = -1;

	(void)fflush(stderr);
	if (c->saved >= 0) {
		(void)dup2(c->saved, STDERR_FILENO);
		(void)close(c->saved);
	}
	if (c->memfd >= 0) {
		n = pread(c->memfd, text, size - 1, 0);
		(void)close(c->memfd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static int check_device(struct error *err)
{
	if (access("/dev/fuse", R_OK | W_OK) == 0)
		return 0;
	if (errno == ENOENT)
		return error_set(err, -ENOENT,
			"/dev/fuse is missing: load the fuse module, or start "
			"the container with --device /dev/fuse");
	return error_set(err, -errno,
		"cannot open /dev/fuse: %m; ask root for access to it "
		"(mode 0666 is usual)");
}

/* A context has commas, which separate options, if it names categories. */
static int add_context(struct fuse_args *args, const char *name, const char *v)
{
	CLEANUP_FREE char *word = NULL, *escaped = NULL;

	if (!v)
		return 0;
	if (asprintf(&word, "%s=\"%s\"", name, v) < 0 ||
		fuse_opt_add_opt_escaped(&escaped, word) < 0 ||
		fuse_opt_add_arg(args, "-o") < 0 ||
		fuse_opt_add_arg(args, escaped) < 0)
		return -ENOMEM;
	return 0;
}

static int add_contexts(struct fuse_args *args, const struct fs_contexts *c)
{
	int rc = add_context(args, "context", c->context);

	if (rc == 0)
		rc = add_context(args, "fscontext", c->fscontext);
	if (rc == 0)
		rc = add_context(args, "defcontext", c->defcontext);
	if (rc == 0)
		rc = add_context(args, "rootcontext", c->rootcontext);
	return rc;
}

static int fill_options(struct fuse_args *args, const struct fs_config *c)
{
	char opts[8192];
	int n = snprintf(opts, sizeof(opts),
		"ro,nosuid,nodev,default_permissions,subtype=refrain%s",
		c->allow_other ? ",allow_other" : "");
	CLEANUP_FREE char *fsname = NULL;

	if (n < 0 || (size_t)n >= sizeof(opts))
		return -ENAMETOOLONG;
	if (asprintf(&fsname, "-ofsname=%s", c->source) < 0)
		return -ENOMEM;
	/* Replace commas, which would end the option, and backslashes. */
	for (char *p = fsname; *p; p++)
		if (*p == ',' || *p == '\\')
			*p = '_';
	if (fuse_opt_add_arg(args, "refrain") < 0 ||
		fuse_opt_add_arg(args, "-o") < 0 ||
		fuse_opt_add_arg(args, opts) < 0 ||
		fuse_opt_add_arg(args, fsname) < 0)
		return -ENOMEM;
	return add_contexts(args, &c->contexts);
}

/* Drop libfuse's messages while the mount is served, because no user would see
 * them. */
static void say_nothing(
	enum fuse_log_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
}

static int session_attach(struct fs *fs)
{
	int rc;

	if (session_connection(fs->config.session) >= 0) {
		rc = takeover_open(fs, fs->se);
		if (rc == 0 && fs->config.journal >= 0) {
			fs->journal = journal_open(fs->config.journal);
			rc = fs->journal ? journal_attach(fs) : -EBADMSG;
		}
		return rc;
	}
	return fuse_session_mount(fs->se, fs->config.mountpoint);
}

static int fuse_open(struct fs *fs)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_lowlevel_ops ops = fs_ops;
	int rc = fill_options(&args, &fs->config);

	if (rc == 0) {
		fs->se = fuse_session_new(&args, &ops, sizeof(ops), fs);
		rc = fs->se ? 0 : -EINVAL;
	}
	fuse_opt_free_args(&args);
	if (rc == 0 && session_attach(fs) != 0) {
		fuse_session_destroy(fs->se);
		fs->se = NULL;
		rc = -EPERM;
	}
	/* Raise the read-ahead now, because a file uses the value at the time
	 * of its open. */
	if (rc == 0)
		(void)fs_read_ahead_kib(fs);
	return rc;
}

static const char *mount_advice(const struct fs_config *c, const char *text)
{
	if (strstr(text, "user_allow_other"))
		return " (add that line, or leave out --allow-other)";
	if (c->contexts.context || c->contexts.fscontext ||
		c->contexts.defcontext || c->contexts.rootcontext)
		return " (contexts need root and a kernel with SELinux)";
	return "";
}

static int session_mount(struct fs *fs, struct error *err)
{
	struct capture capture;
	char text[512];
	int rc;

	capture_begin(&capture);
	rc = fuse_open(fs);
	capture_end(&capture, text, sizeof(text));
	fuse_set_log_func(say_nothing);
	if (rc == 0)
		return 0;
	return error_set(err, rc, "cannot mount on '%s': %s%s",
		fs->config.mountpoint, text[0] ? text : "the kernel refused",
		mount_advice(&fs->config, text));
}

void fs_free(struct fs *fs)
{
	void *w;

	if (!fs)
		return;
	/* If this thread was a worker, free its data now, because the key's
	 * destructor runs only at the end of a thread. */
	w = pthread_getspecific(fs->worker_key);
	if (w) {
		(void)pthread_setspecific(fs->worker_key, NULL);
		fs_worker_free(w);
	}
	/* cannot fail: all other threads that used the key have ended */
	(void)pthread_key_delete(fs->worker_key);
	journal_free(fs->journal);
	(void)pthread_cond_destroy(&fs->cond);
	(void)pthread_mutex_destroy(&fs->lock);
	gathers_release(&fs->gathers);
	MAGIC_END(fs);
	free(fs);
}

int fs_mount(struct fs **out, const struct fs_config *config, struct error *err)
{
	bool open = session_connection(config->session) >= 0 ||
		fs_given_connection(config->mountpoint) >= 0;
	int rc = open ? 0 : check_device(err);
	struct fs *fs;

	if (rc < 0)
		return rc;
	fs = calloc(1, sizeof(*fs));
	if (!fs)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	MAGIC_BEGIN(fs, fs);
	fs->config = *config;
	rc = -pthread_key_create(&fs->worker_key, fs_worker_free);
	if (rc < 0) {
		free(fs);
		return error_set(err, rc, "cannot mount: %m");
	}
	lock_init(&fs->lock, RANK_FS);
	cond_init(&fs->cond);
	gathers_init(&fs->gathers, config->gather_bytes, fs_read_elsewhere);
	rc = session_mount(fs, err);
	if (rc < 0) {
		fs_free(fs);
		return rc;
	}
	*out = fs;
	return 0;
}

void fs_unmount(struct fs *fs)
{
	struct capture capture;
	/* libfuse's message for a mount that was unmounted already; it is
	 * dropped */
	char text[512];

	if (!fs)
		return;
	capture_begin(&capture);
	if (session_connection(fs->config.session) >= 0)
		takeover_unmount(fs);
	else
		fuse_session_unmount(fs->se);
	capture_end(&capture, text, sizeof(text));
	fuse_session_destroy(fs->se);
}

bool fs_can_be_held(const struct fs *fs)
{
	return fs->journal || takeover_can_resend(fs->config.session);
}

int fs_journal(const struct fs *fs)
{
	return journal_fd(fs->journal);
}

int fs_connection(const struct fs *fs)
{
	return fuse_session_fd(fs->se);
}

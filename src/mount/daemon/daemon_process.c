/* SPDX-License-Identifier: MIT */
/*
 * The process of a mount. It goes into the background before it has other
 * threads. The parent process waits at a pipe, which gets either one byte when
 * the mount is ready, or the reason for a failure. systemd gets a datagram. A
 * separate thread waits for signals, so that no signal handler interrupts other
 * code.
 */
#include "mount/daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/magic.h"

/* -- The background process ----------------------------------------------- */

/* The first byte on the pipe. After SAY_FAILED, -errno and a message follow. */
#define SAY_READY 'r'
#define SAY_FAILED 'f'

struct failure {
	char say;
	int rc;
	char msg[sizeof(((struct error *)NULL)->msg)];
};

static int wait_for_child(int fd, struct error *err)
{
	struct failure f = {0};
	char *buf = (char *)&f;
	size_t n = 0;

	while (n < sizeof(f) - 1) {
		ssize_t got = read(fd, buf + n, sizeof(f) - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (n > 0 && f.say == SAY_READY)
		return 0;
	if (n > offsetof(struct failure, msg) && f.say == SAY_FAILED)
		return error_set(err, f.rc, "%s", f.msg);
	return error_set(err, -EIO,
		"the daemon died while starting; try --foreground to see why");
}

int process_fork(struct mount *m, struct error *err, bool *parent)
{
	int fd[2];
	pid_t pid;

	*parent = false;
	m->ready_fd = -1;
	if (m->options.foreground || m->options.held)
		return 0;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return error_set(err, -errno, "cannot start the daemon: %m");
	pid = fork();
	if (pid < 0) {
		int rc = error_set(err, -errno, "cannot start the daemon: %m");

		(void)close(fd[0]);
		(void)close(fd[1]);
		return rc;
	}
	if (pid > 0) {
		int rc;

		(void)close(fd[1]);
		*parent = true;
		rc = wait_for_child(fd[0], err);
		(void)close(fd[0]);
		/* Wait until the child has cleaned up, and only then report the
		 * failure. */
		if (rc < 0)
			(void)waitpid(pid, NULL, 0);
		return rc;
	}
	(void)close(fd[0]);
	/* Cannot fail, because the child does not lead a process group */
	(void)setsid();
	m->ready_fd = fd[1];
	return 0;
}

/* Stop using the caller's terminal and working directory. */
static void let_go(void)
{
	CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		for (int fd = 0; fd <= 2; fd++)
			(void)dup2(null, fd);
	if (chdir("/") < 0)
		/* this failure only means that the working directory stays in
		 * use */
		return;
}

void process_ready(struct mount *m)
{
	if (m->ready_fd >= 0 || (m->options.held && !m->options.foreground)) {
		log_detach(m->log);
		let_go();
	}
	notify_holder("READY=1", -1);
	if (m->ready_fd < 0)
		return;
	(void)!write(m->ready_fd, (char[]){SAY_READY}, 1);
	(void)close(m->ready_fd);
	m->ready_fd = -1;
}

void process_failed(struct mount *m, int rc, const struct error *err)
{
	struct failure f = {.say = SAY_FAILED, .rc = rc};

	(void)snprintf(f.msg, sizeof(f.msg), "%s", err->msg);
	/* The write fails only if the parent is gone. */
	(void)!write(m->ready_fd, &f, sizeof(f));
	(void)close(m->ready_fd);
	m->ready_fd = -1;
}

/* -- The end of the process ------------------------------------------------ */

/* Exit at once, so that a hanging origin does not keep the daemon alive. The
 * origin may still write to memory, so this memory cannot be freed before; the
 * kernel frees it with the process. The caller has completed all work whose
 * results outlive the process. */
void process_leave_at_once(struct mount *m, const struct error *why)
{
	if (m->ctl)
		(void)unlink(ctl_server_path(m->ctl));
	log_flush(m->log);
	if (why && m->ready_fd >= 0)
		process_failed(m, -EIO, why);
	else if (why)
		(void)fprintf(stderr, "refrain: mount: %s\n", why->msg);
	/* Unlike _exit(), this call does not run a sanitizer's search for
	 * leaks, which would report the memory that was not freed. */
	(void)syscall(SYS_exit_group, why != NULL);
}

/* Delete the tiers that this mount has created, because its start has failed.
 */
void process_leave_no_tier(struct mount *m)
{
	uint64_t removed;

	for (size_t i = 0; i < m->options.ntiers; i++) {
		/* Ignore the message: the caller reports why the start failed.
		 */
		if (m->tier_new[i])
			(void)store_clear_dir(m->tier_dir[i], &removed, NULL);
		if (m->tier_dir_new[i])
			(void)rmdir(m->tier_dir[i]);
	}
}

/* End the process while the mount is being started. Called with the lock held,
 * while the main thread waits for the origin or for this lock. */
static void process_give_up(struct mount *m)
{
	struct error why;

	(void)error_set(&why, -EINTR,
		"stopped by a signal while source '%s' did not answer",
		stack_name(m->stack));
	if (m->store)
		store_close(m->store);
	process_leave_no_tier(m);
	process_leave_at_once(m, &why);
}

/* -- Signals -------------------------------------------------------------- */

/* Wait until all parts exist. If the main thread waits for the origin, end the
 * process instead. */
static void wait_until_built(struct mount *m)
{
	pthread_mutex_lock(&m->life.lock);
	while (!m->life.serving && !m->life.stopping) {
		if (m->life.asking)
			process_give_up(m);
		pthread_cond_wait(&m->life.cond, &m->life.lock);
	}
	pthread_mutex_unlock(&m->life.lock);
}

/* This signal ends the daemon but not the mount: the holder keeps the mount,
 * and another daemon can continue it. */
#define LEAVE_SIGNAL SIGUSR2

/* Fill in the set of signals that end the daemon. */
static void ending_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGHUP);
	(void)sigaddset(set, LEAVE_SIGNAL);
}

/* Wait for a signal that ends the daemon. SIGHUP ends it only if there is no
 * log file; otherwise SIGHUP reopens the file. */
static int wait_for_signal(struct mount *m)
{
	sigset_t set;
	int sig;

	ending_signals(&set);
	while (sigwait(&set, &sig) != 0 ||
		(sig == SIGHUP && log_reopen(m->log)))
		;
	return sig;
}

static void *signal_main(void *arg)
{
	struct mount *m = OBJECT(mount, arg);
	int sig = wait_for_signal(m);

	/* If the mount is stopping already, the signal came from
	 * process_leave_signals() and has done its work: it woke this thread.
	 */
	pthread_mutex_lock(&m->life.lock);
	m->life.signal = m->life.stopping ? 0 : sig;
	pthread_mutex_unlock(&m->life.lock);
	notify_holder("STOPPING=1", -1);
	wait_until_built(m);
	if (sig == LEAVE_SIGNAL && held_leave(m))
		process_leave_at_once(m, NULL);
	mount_set_stopping(m);
	mount_quiesce(m);
	if (m->fs)
		fs_exit(m->fs);
	return NULL;
}

/* Block signals in this thread and in the threads that it starts. */
static void block_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Raise the limit for open files: each item that is being fetched needs an open
 * file of the origin. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	/* If this fails, fewer files can be open at a time */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* If the memory limit is lower than this, malloc() returns freed memory to the
 * system, even though that takes time. */
#define MEMORY_AMPLE_BYTES ((uint64_t)1 << 30)

void process_prepare(void)
{
	/* Let malloc() keep the memory of small items for reuse, because new
	 * mappings cost a page fault for each page. Memory of larger items is
	 * returned to the system when it is freed. */
	bool scarce = memory_limit() < MEMORY_AMPLE_BYTES;

	(void)mallopt(M_MMAP_THRESHOLD, scarce ? 128 << 10 : 2 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, scarce ? 1 << 20 : 32 << 20);
	(void)mallopt(M_ARENA_MAX, 2);
	block_signals();
	raise_fd_limit();
}

int process_take_signals(struct mount *m, struct error *err)
{
	int rc = -pthread_create(&m->life.signal_thread, NULL, signal_main, m);

	if (rc < 0)
		return error_set(err, rc, "cannot start a thread: %m");
	m->life.signal_started = true;
	return 0;
}

void process_leave_signals(struct mount *m)
{
	if (!m->life.signal_started)
		return;
	(void)pthread_kill(m->life.signal_thread, SIGTERM);
	pthread_join(m->life.signal_thread, NULL);
	m->life.signal_started = false;
}

/* SPDX-License-Identifier: MIT */
/* The process that waits in the kernel; see notifier.h. One thread. */
#include "common/base/notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/send_fds.h"

/* Close the descriptors from `first` to `last`. */
static void close_all(unsigned first, unsigned last)
{
	struct rlimit limit = {.rlim_cur = 1024};

	if (first > last || close_range(first, last, 0) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail */
	for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		/* fails for most, because they are not open */
		(void)close((int)fd);
}

/* Ignore the signals of a terminal, which are for the daemon. SIGTERM ends this
 * process. */
static void notifier_signals(void)
{
	sigset_t none;

	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Is the message a notification? Only the daemon may write other messages, such
 * as the answer to a request. */
static bool is_notification(const void *message, size_t bytes)
{
	struct fuse_out_header head;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, message, sizeof(head));
	return head.len == bytes && head.unique == 0 &&
		(head.error == FUSE_NOTIFY_INVAL_ENTRY ||
			head.error == FUSE_NOTIFY_INVAL_INODE);
}

/* Only pages that no program has mapped or locked are dropped. */
static int notifier_drop_pages(int root, const void *message, size_t bytes)
{
	const size_t head = offsetof(struct notifier_drop, path);
	struct notifier_drop d;
	int fd, rc;

	if (bytes <= head || bytes > sizeof(d))
		return -EINVAL;
	memcpy(&d, message, bytes);
	if (d.path[bytes - head - 1] != '\0')
		return -EINVAL;
	/* This open waits until the daemon answers. */
	fd = openat(root, d.path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = -posix_fadvise(
		fd, (off_t)d.off, (off_t)d.bytes, POSIX_FADV_DONTNEED);
	(void)close(fd);
	return rc;
}

/* Do what a message with a descriptor asks for. */
static int notifier_take(
	int *connection, const void *message, size_t bytes, struct got_fds *got)
{
	int rc = 0;

	if (bytes > 1) {
		rc = notifier_drop_pages(got->fd[0], message, bytes);
		fds_close(got, 0);
		return rc;
	}
	if (*connection >= 0)
		(void)close(*connection);
	*connection = got->fd[0];
	fds_close(got, 1);
	return 0;
}

/* Do what a message asks for. */
static int notifier_do(
	int *connection, const void *message, size_t bytes, struct got_fds *got)
{
	if (got->cut) {
		fds_close(got, 0);
		return -EMSGSIZE;
	}
	if (got->n > 0)
		return notifier_take(connection, message, bytes, got);
	if (!is_notification(message, bytes))
		return -EINVAL;
	/* This call waits while the kernel waits for a lock. */
	return write(*connection, message, bytes) < 0 ? -errno : 0;
}

void notifier_run(int socket, const char *comm)
{
	char message[NOTIFIER_BYTES_MAX];
	int connection = -1, rc = 0;
	struct got_fds got;
	ssize_t n;

	(void)prctl(PR_SET_NAME, comm, 0, 0, 0);
	/* cannot fail, because a child does not lead a process group */
	(void)setsid();
	if (socket > 0)
		close_all(0, (unsigned)socket - 1);
	close_all((unsigned)socket + 1, ~0U);
	notifier_signals();
	if (chdir("/") < 0)
		/* a file system cannot be unmounted while it has a working
		 * directory */
		_exit(1);
	do {
		if (fds_send(socket, &rc, sizeof(rc), NULL, 0, 0) < 0)
			break;
		n = fds_receive(socket, message, sizeof(message), &got, 0);
		if (n > 0)
			rc = notifier_do(&connection, message, (size_t)n, &got);
	} while (n > 0);
	_exit(0);
}

int notifier_pair(int end[2])
{
	int one = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) < 0)
		return -errno;
	/* If this fails, answers lack the sender's number, and a stopped
	 * process is not noticed. */
	(void)setsockopt(end[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one));
	return 0;
}

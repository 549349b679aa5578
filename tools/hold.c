/* SPDX-License-Identifier: MIT */
/*
 * refrain-hold: starts the daemon of a mount, keeps the descriptors that the
 * daemon asks it to keep, and starts it again with them if it dies. It speaks
 * the protocols of sd_notify(3) and sd_listen_fds(3), as systemd does, so the
 * daemon has one way to be held. It ends with the mount, or gives up in bounded
 * time: then the kernel's connection ends, as nobody has it any more.
 *
 * One thread, few pages: it shall not die of what the daemon dies of.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/unmount.h"

#define FDS_MAX 8
#define NAME_MAX_BYTES 32
#define MS_PER_S 1000
/* Daemons that end by themselves, or before they serve: so many are started in
 * this time. */
#define ENDS_MAX 5
#define ENDS_KEPT (ENDS_MAX - 1)
#define ENDS_MS (60 * MS_PER_S)
#define PAUSE_MS 100
#define PAUSE_MAX_MS 5000
#define RECOVER_TIMEOUT_S 30

struct stored {
	char name[NAME_MAX_BYTES];
	int fd;
};

struct holder {
	char **argv;	    /* of the daemon */
	char cwd[PATH_MAX]; /* where it is started */
	char address[64];   /* NOTIFY_SOCKET */
	const char *path;   /* of the socket, or NULL */
	const char *above;  /* NOTIFY_SOCKET of who started us, or NULL */
	bool background;
	int socket, signals, ready_fd;
	long timeout_ms;
	int oom_score; /* what the daemon gets */
	struct stored kept[FDS_MAX];
	unsigned n; /* of kept */
	char mountpoint[PATH_MAX];
	pid_t child;		  /* 0: there is none */
	bool ready;		  /* the child serves */
	bool served;		  /* a child did */
	bool stop;		  /* asked to end while there was no child */
	long down_ms;		  /* since when nobody serves */
	long next_ms;		  /* when to start the next one */
	long ended_ms[ENDS_KEPT]; /* the last ends that count */
	unsigned ends;
};

static long now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return (long)ts.tv_sec * MS_PER_S + ts.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 3))) static void hold_say(
	const struct holder *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (h->served && h->background) {
		vsyslog(LOG_ERR, format, args);
	} else {
		(void)fputs("refrain: hold: ", stderr);
		(void)vfprintf(stderr, format, args);
		(void)fputc('\n', stderr);
	}
	va_end(args);
}

/* -- What is kept --------------------------------------------------------- */

static void hold_drop(struct holder *h, unsigned i)
{
	(void)close(h->kept[i].fd);
	h->kept[i] = h->kept[--h->n];
}

static void hold_drop_named(struct holder *h, const char *name)
{
	for (unsigned i = h->n; i-- > 0;)
		if (strcmp(h->kept[i].name, name) == 0)
			hold_drop(h, i);
}

static void hold_keep(struct holder *h, const char *name, int fd)
{
	hold_drop_named(h, name);
	if (h->n == FDS_MAX || !*name) {
		(void)close(fd);
		return;
	}
	(void)snprintf(h->kept[h->n].name, NAME_MAX_BYTES, "%s", name);
	h->kept[h->n++].fd = fd;
}

/* The kernel's connection, or -1. */
static int connection(const struct holder *h)
{
	for (unsigned i = 0; i < h->n; i++)
		if (strcmp(h->kept[i].name, "refrain-fuse") == 0)
			return h->kept[i].fd;
	return -1;
}

static bool hold_unmounted(const struct holder *h)
{
	struct pollfd p = {.fd = connection(h)};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* -- Messages of the daemon ----------------------------------------------- */

/* The contents of one datagram. */
struct said {
	char text[4096];
	int fd; /* -1: none */
};

static void take_fds(struct cmsghdr *c, struct said *said)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
		if (said->fd < 0)
			said->fd = fd;
		else
			(void)close(fd);
	}
}

/* Our user's, or root's; of the daemon only where it is our child. */
static bool may_speak(const struct holder *h, const struct ucred *who)
{
	return (who->uid == geteuid() || who->uid == 0) &&
		(h->child == 0 || who->pid == h->child);
}

static bool hear(const struct holder *h, struct said *said)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred)) +
			CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {said->text, sizeof(said->text) - 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control)};
	struct ucred who = {.pid = -1, .uid = (uid_t)-1};
	ssize_t n = recvmsg(h->socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	said->fd = -1;
	if (n < 0)
		return false;
	said->text[n] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
		c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_fds(c, said);
		else if (c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&who, CMSG_DATA(c), sizeof(who));
	}
	if (!may_speak(h, &who) || (msg.msg_flags & MSG_TRUNC))
		said->text[0] = '\0';
	return true;
}

/* The value of a line NAME=VALUE of the text, or NULL. */
static const char *value_of(
	const char *text, const char *name, char *buf, size_t size)
{
	size_t len = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t n = strcspn(text, "\n");

		if (n <= len || memcmp(text, name, len) != 0 ||
			text[len] != '=' || n - len - 1 >= size)
			continue;
		memcpy(buf, text + len + 1, n - len - 1);
		buf[n - len - 1] = '\0';
		return buf;
	}
	return NULL;
}

/* systemd, perhaps: it knows us, and not our daemon. */
static void tell_above(const struct holder *h, const char *state)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = h->above ? strlen(h->above) : 0;
	int fd;

	if (len == 0 || len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, h->above, len);
	if (h->above[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nobody listens: then nobody wants to know. */
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	(void)close(fd);
}

/* Nothing of the caller's terminal or working directory is kept. */
static void let_go_of_caller(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
	if (chdir("/") < 0)
		return; /* then it stays busy, no more */
}

static void hold_ready(struct holder *h)
{
	h->ready = true;
	if (h->served)
		return;
	h->served = true;
	tell_above(h, "READY=1");
	if (h->ready_fd < 0)
		return;
	let_go_of_caller();
	(void)!write(h->ready_fd, "r", 1); /* nobody may wait any more */
	(void)close(h->ready_fd);
	h->ready_fd = -1;
}

static void act_on(struct holder *h, struct said *said)
{
	char name[NAME_MAX_BYTES] = "", buf[PATH_MAX];

	(void)value_of(said->text, "FDNAME", name, sizeof(name));
	if (value_of(said->text, "X_REFRAIN_MOUNTPOINT", buf, sizeof(buf)))
		memcpy(h->mountpoint, buf, sizeof(buf));
	if (value_of(said->text, "FDSTORE", buf, sizeof(buf)) &&
		said->fd >= 0) {
		hold_keep(h, name, said->fd);
		said->fd = -1;
	}
	if (value_of(said->text, "FDSTOREREMOVE", buf, sizeof(buf)))
		hold_drop_named(h, name);
	if (value_of(said->text, "STOPPING", buf, sizeof(buf)))
		tell_above(h, "STOPPING=1");
	if (value_of(said->text, "READY", buf, sizeof(buf)))
		hold_ready(h);
	if (said->fd >= 0)
		(void)close(said->fd);
}

static void hear_all(struct holder *h)
{
	struct said said;

	while (hear(h, &said))
		act_on(h, &said);
}

/* -- The daemon ----------------------------------------------------------- */

static void hold_setenv(const char *name, long n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%ld", n);
	(void)setenv(name, text, 1); /* then the daemon is not held */
}

static void set_oom_score(int score)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "we");

	if (!f)
		return;
	(void)fprintf(f, "%d", score);
	(void)fclose(f); /* not everybody may */
}

/* In the child. */
static void pass_fds(const struct holder *h)
{
	char names[FDS_MAX * (NAME_MAX_BYTES + 1)] = "";
	int fds[FDS_MAX];

	/* Out of the way of each other. */
	for (unsigned i = 0; i < h->n; i++)
		fds[i] = fcntl(h->kept[i].fd, F_DUPFD_CLOEXEC, 3 + FDS_MAX);
	for (unsigned i = 0; i < h->n; i++) {
		size_t len = strlen(names);

		(void)dup2(fds[i], 3 + (int)i);
		(void)snprintf(names + len, sizeof(names) - len, "%s%s",
			i > 0 ? ":" : "", h->kept[i].name);
	}
	if (h->n == 0)
		return;
	hold_setenv("LISTEN_FDS", h->n);
	hold_setenv("LISTEN_PID", getpid());
	(void)setenv("LISTEN_FDNAMES", names, 1);
}

static void hold_exec(const struct holder *h)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (h->background)
		(void)setsid(); /* as without a holder */
	set_oom_score(h->oom_score);
	if (h->served && chdir(h->cwd) < 0)
		_exit(127);
	(void)setenv("NOTIFY_SOCKET", h->address, 1);
	(void)setenv("REFRAIN_HELD", h->served ? "again" : "first", 1);
	pass_fds(h);
	(void)execvp(h->argv[0], h->argv);
	(void)fprintf(stderr, "refrain: hold: cannot run '%s': %s\n",
		h->argv[0], strerror(errno));
	_exit(127);
}

static void hold_start(struct holder *h)
{
	pid_t pid = fork();

	h->ready = false;
	if (pid == 0)
		hold_exec(h);
	if (pid > 0)
		h->child = pid;
	else
		h->next_ms = now_ms() + PAUSE_MAX_MS;
}

/* Was this end one too many in a short time? */
static bool too_many(struct holder *h, long now)
{
	long *at = &h->ended_ms[h->ends % ENDS_KEPT];
	bool many = h->ends++ >= ENDS_KEPT && now - *at < ENDS_MS;

	*at = now;
	return many;
}

static long pause_ms(const struct holder *h, long now)
{
	long pause = 0;

	for (unsigned i = 0; i < ENDS_KEPT; i++)
		if (h->ended_ms[i] != 0 && now - h->ended_ms[i] < ENDS_MS)
			pause = pause ? pause * 2 : PAUSE_MS;
	return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}

static const char *how(int status, char *buf, size_t size)
{
	if (WIFSIGNALED(status))
		(void)snprintf(
			buf, size, "was killed by signal %d", WTERMSIG(status));
	else
		(void)snprintf(
			buf, size, "ended with status %d", WEXITSTATUS(status));
	return buf;
}

static int as_exit(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* The last copies of the connection go: whoever waits for it gets an error. */
static int hold_give_up(struct holder *h, const char *why)
{
	struct error err;

	if (h->child > 0) {
		(void)kill(h->child, SIGKILL);
		(void)waitpid(h->child, NULL, 0);
	}
	while (h->n > 0)
		hold_drop(h, 0);
	hold_say(h, "%s: gave up: %s", h->mountpoint, why);
	if (*h->mountpoint && unmount(h->mountpoint, true, &err) < 0)
		hold_say(h, "%s", err.msg);
	return 1;
}

/*
 * The daemon has ended and was reaped, so that none of its threads can take a
 * request any more. Returns the status to end with, or -1 to go on.
 */
static int child_ended(struct holder *h, int status)
{
	long now = now_ms();
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	char buf[64];

	hear_all(h);
	h->child = 0;
	if (connection(h) < 0)
		return as_exit(status);
	if (hold_unmounted(h)) /* unmounted meanwhile */
		return 0;
	if (h->ready)
		h->down_ms = now;
	hold_say(h, "%s: the daemon %s; starting it again", h->mountpoint,
		how(status, buf, sizeof(buf)));
	if (!(killed && h->ready) && too_many(h, now))
		return hold_give_up(h, "the daemon ended too often");
	h->next_ms = now + (killed && h->ready ? 0 : pause_ms(h, now));
	return -1;
}

static int hold_reap(struct holder *h)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == h->child)
			return child_ended(h, status);
	return -1;
}

/* -- The loop ------------------------------------------------------------- */

static int hold_on_signal(struct holder *h)
{
	struct signalfd_siginfo s;

	if (read(h->signals, &s, sizeof(s)) != sizeof(s))
		return -1;
	if (s.ssi_signo == SIGCHLD)
		return hold_reap(h);
	if (h->child > 0)
		(void)kill(h->child, (int)s.ssi_signo);
	else if (s.ssi_signo != SIGHUP)
		return hold_give_up(h, "told to end while no daemon served");
	return -1;
}

static bool is_down(const struct holder *h)
{
	return h->n > 0 && !(h->child > 0 && h->ready);
}

/* How long to wait; -1: until something happens. */
static int hold_wait_ms(const struct holder *h, long now)
{
	long until = -1;

	if (h->child == 0)
		until = h->next_ms;
	if (is_down(h) && h->served &&
		(until < 0 || h->down_ms + h->timeout_ms < until))
		until = h->down_ms + h->timeout_ms;
	if (until < 0)
		return -1;
	return until > now ? (int)(until - now) : 0;
}

static int on_time(struct holder *h)
{
	long now = now_ms();

	if (is_down(h) && h->served && now - h->down_ms >= h->timeout_ms)
		return hold_give_up(
			h, "no daemon served for --recover-timeout");
	if (h->child == 0 && now >= h->next_ms)
		hold_start(h);
	return -1;
}

static int hold_run(struct holder *h)
{
	int end = -1;

	while (end < 0) {
		/* The connection is looked at only while nobody serves it: the
		 * kernel would wake us for each request. */
		struct pollfd p[] = {
			{.fd = h->signals, .events = POLLIN},
			{.fd = h->socket, .events = POLLIN},
			{.fd = h->child > 0 ? -1 : connection(h)},
		};

		if (poll(p, 3, hold_wait_ms(h, now_ms())) < 0 && errno != EINTR)
			return hold_give_up(h, strerror(errno));
		if (p[1].revents)
			hear_all(h);
		if (p[0].revents)
			end = hold_on_signal(h);
		if (end < 0 && (p[2].revents & POLLERR))
			end = 0; /* unmounted while nobody served */
		if (end < 0)
			end = on_time(h);
	}
	if (h->path)
		(void)unlink(h->path);
	return end;
}

/* -- The start ------------------------------------------------------------ */

/* A socket at a path, or in the abstract name space. */
static int hold_listen(struct holder *h)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa_family_t);
	mode_t mask;
	int one = 1, rc;

	h->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (h->socket < 0 ||
		setsockopt(h->socket, SOL_SOCKET, SO_PASSCRED, &one,
			sizeof(one)) < 0)
		return -errno;
	if (h->path) {
		if (strlen(h->path) >= sizeof(at.sun_path))
			return -ENAMETOOLONG;
		(void)unlink(h->path); /* of one that was killed */
		(void)strcpy(at.sun_path, h->path);
		len = sizeof(at);
	}
	mask = umask(0177);
	rc = bind(h->socket, (struct sockaddr *)&at, len);
	(void)umask(mask);
	len = sizeof(at);
	if (rc < 0 || getsockname(h->socket, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	if (h->path)
		(void)snprintf(h->address, sizeof(h->address), "%s", h->path);
	else
		(void)snprintf(h->address, sizeof(h->address), "@%.*s",
			(int)(len - offsetof(struct sockaddr_un, sun_path) - 1),
			at.sun_path + 1);
	return 0;
}

static int hold_signals(struct holder *h)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	h->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return h->signals < 0 ? -errno : 0;
}

static void protect(struct holder *h)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "re");

	if (f && fscanf(f, "%d", &h->oom_score) != 1)
		h->oom_score = 0;
	if (f)
		(void)fclose(f);
	set_oom_score(-1000);
	/* What was touched stays in memory, without a limit or as far as it
	 * goes. */
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static int hold_usage_error(const char *what)
{
	(void)fprintf(stderr,
		"refrain: hold: '%s' is not an option or lacks its value; see "
		"refrain-hold(1)\n",
		what);
	return 2;
}

static bool hold_option(struct holder *h, const char *name, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (strcmp(name, "--socket") == 0) {
		h->path = value;
		return true;
	}
	if (!*value || *end || n < 0 || n > INT_MAX / MS_PER_S)
		return false;
	if (strcmp(name, "--recover-timeout") == 0)
		h->timeout_ms = n * MS_PER_S;
	else if (strcmp(name, "--ready-fd") == 0)
		h->ready_fd = (int)n;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct holder h = {
		.ready_fd = -1,
		.timeout_ms = (long)RECOVER_TIMEOUT_S * MS_PER_S,
	};
	int i = 1, rc;

	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2)
		if (!hold_option(&h, argv[i], argv[i + 1]))
			return hold_usage_error(argv[i]);
	if (i + 1 >= argc || strcmp(argv[i], "--") != 0)
		return hold_usage_error(i < argc ? argv[i] : "--");
	h.argv = argv + i + 1;
	h.background = h.ready_fd >= 0;
	h.above = getenv("NOTIFY_SOCKET");
	h.above = h.above ? strdup(h.above) : NULL;
	if (!getcwd(h.cwd, sizeof(h.cwd)))
		(void)strcpy(h.cwd, "/");
	if (h.ready_fd >= 0)
		(void)fcntl(h.ready_fd, F_SETFD, FD_CLOEXEC);
	openlog("refrain-hold", LOG_PID, LOG_DAEMON);
	rc = hold_listen(&h);
	if (rc == 0)
		rc = hold_signals(&h);
	if (rc < 0) {
		hold_say(&h, "cannot start: %s", strerror(-rc));
		return 1;
	}
	protect(&h);
	return hold_run(&h);
}

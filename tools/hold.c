/* SPDX-License-Identifier: MIT */
/*
 * refrain-hold: starts the daemon of a mount, and stores the descriptors that
 * the daemon sends. If the daemon dies, refrain-hold starts a new daemon and
 * passes it these descriptors. The daemon uses the protocols of sd_notify(3)
 * and sd_listen_fds(3) for both, as it does under systemd. refrain-hold ends
 * when the mount is unmounted. It gives up if daemons fail too often or for too
 * long: then no process has the connection to the kernel any more, and the
 * kernel ends it.
 *
 * With --socket refrain-hold starts no daemon: another program does, such as
 * the runtime of another container. That daemon gets --join, receives the
 * stored descriptors and stays linked to refrain-hold. In this mode
 * refrain-hold continues after it gave up, and waits for the next mount.
 *
 * It has one thread and few pages of memory, so that the kernel does not kill
 * it when the daemon uses too much memory.
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
#include "common/base/notifier.h"
#include "common/base/proc.h"
#include "common/base/refuse.h"
#include "hold_ends.h"
#include "hold_mount.h"
#include "hold_socket.h"
#include "hold_wire.h"

#define MS_PER_S 1000
#define FORK_PAUSE_MS (5L * MS_PER_S)

/* refrain-hold checks at this interval whether the child is stuck in the
 * kernel. A child that has been stuck for as long as this is recovered. */
#define STUCK_MS (2L * MS_PER_S)
#define RECOVER_TIMEOUT_S 30

/* The processes that wait in the kernel for the daemon, and the messages that
 * ask for them (common/base/notifier.h). */
static const struct {
	const char *asked, *comm;
} hold_agents[] = {
	{"X_REFRAIN_NOTIFIER", NOTIFIER_COMM},
	{"X_REFRAIN_PAGES", NOTIFIER_PAGES_COMM},
};

#define HOLD_AGENTS (sizeof(hold_agents) / sizeof(hold_agents[0]))

struct holder {
	char **argv;	    /* command line of the daemon; NULL with --socket */
	char cwd[PATH_MAX]; /* directory in which the daemon is started */
	const char *path;   /* path of the own socket, or NULL */
	/* path of the socket of another holder to join, or NULL */
	const char *join;
	/* NOTIFY_SOCKET of the service manager that started this process, or
	 * NULL */
	const char *above;
	bool background;
	struct hold_socket socket;
	int signals, ready_fd;
	long timeout_ms;
	int oom_score; /* oom_score_adj of the daemon */
	struct stored stored[HOLD_FDS_MAX];
	unsigned n; /* number of elements of `stored` */
	char mountpoint[PATH_MAX];
	/* minor number of the mount's device; 0: the device is not visible here
	 */
	unsigned device;
	pid_t child; /* process of the daemon; 0: none */
	/* processes that wait in the kernel for the daemon; 0: none */
	pid_t agent[HOLD_AGENTS];
	int link;      /* link to a daemon that joined; -1: none */
	bool ready;    /* the present daemon serves the mount */
	bool served;   /* any daemon has served the mount */
	long ready_ms; /* time when the present daemon began to serve */
	long down_ms;  /* time from which on no daemon has served */
	/* time when the child's first thread was first seen dead; 0: it lives
	 */
	long stuck_ms;
	long next_ms; /* time when to start the next daemon */
	struct hold_ends ends;
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

/* -- Stored descriptors ---------------------------------------------------- */

static void hold_drop(struct holder *h, unsigned i)
{
	(void)close(h->stored[i].fd);
	h->stored[i] = h->stored[--h->n];
}

static void hold_drop_named(struct holder *h, const char *name)
{
	for (unsigned i = h->n; i-- > 0;)
		if (strcmp(h->stored[i].name, name) == 0)
			hold_drop(h, i);
}

static void hold_keep(struct holder *h, const char *name, int fd)
{
	hold_drop_named(h, name);
	if (h->n == HOLD_FDS_MAX || !*name) {
		(void)close(fd);
		return;
	}
	(void)snprintf(h->stored[h->n].name, HOLD_NAME_BYTES, "%s", name);
	h->stored[h->n++].fd = fd;
}

/* Returns the descriptor with that name; -1 if none is stored. */
static int stored_fd(const struct holder *h, const char *name)
{
	for (unsigned i = 0; i < h->n; i++)
		if (strcmp(h->stored[i].name, name) == 0)
			return h->stored[i].fd;
	return -1;
}

/* Returns the descriptor of the kernel's connection; -1 if none is stored. */
static int connection(const struct holder *h)
{
	return stored_fd(h, "refrain-fuse");
}

static bool hold_unmounted(const struct holder *h)
{
	struct pollfd p = {.fd = connection(h)};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* -- Messages of the daemon ----------------------------------------------- */

/* Forward a state to the service manager, which accepts messages from this
 * process only. */
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
	/* the call fails if no process listens; that does no harm */
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		(struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	(void)close(fd);
}

/* Leave the terminal and the working directory of the program that started this
 * process. */
static void let_go_of_caller(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
	if (chdir("/") < 0)
		/* if this fails, this process keeps the directory busy, which
		 * is the only harm */
		return;
}

static void hold_ready(struct holder *h)
{
	if (!h->ready)
		h->ready_ms = now_ms();
	h->ready = true;
	if (h->served)
		return;
	h->served = true;
	h->device = hold_mounted(h->mountpoint);
	tell_above(h, "READY=1");
	if (h->ready_fd < 0)
		return;
	let_go_of_caller();
	/* The write fails if the program that started this one no longer waits;
	 * that does no harm. */
	(void)!write(h->ready_fd, "r", 1);
	(void)close(h->ready_fd);
	h->ready_fd = -1;
}

static bool has_daemon(const struct holder *h)
{
	return h->child > 0 || h->link >= 0;
}

/* -- Processes that wait in the kernel ------------------------------------- */

/* End a process. If it waits in the kernel, it ends when the next daemon
 * serves, or when the connection ends. */
static void end_agent(struct holder *h, size_t i)
{
	if (h->agent[i] > 0)
		(void)kill(h->agent[i], SIGKILL);
	h->agent[i] = 0;
}

static void end_agents(struct holder *h)
{
	for (size_t i = 0; i < HOLD_AGENTS; i++)
		end_agent(h, i);
}

static void start_agent(struct holder *h, size_t i, int socket)
{
	pid_t pid;

	end_agent(h, i);
	pid = fork();
	if (pid == 0)
		notifier_run(socket, hold_agents[i].comm);
	h->agent[i] = pid > 0 ? pid : 0;
}

/* Start the process that a message asks for; it gets the descriptor. */
static void start_agents(struct holder *h, const struct said *said)
{
	char buf[HOLD_NAME_BYTES];

	for (size_t i = 0; said->fd >= 0 && i < HOLD_AGENTS; i++)
		if (hold_value(
			    said->text, hold_agents[i].asked, buf, sizeof(buf)))
			start_agent(h, i, said->fd);
}

/* -- The end --------------------------------------------------------------- */

static void hold_drop_all(struct holder *h)
{
	end_agents(h);
	while (h->n > 0)
		hold_drop(h, 0);
	h->ready = h->served = false;
	h->device = 0;
	h->ends = (struct hold_ends){.failures = 0};
}

/* Close the last descriptors of the connection, so that waiting programs get an
 * error. Returns the exit status; -1: wait for the next daemon. */
static int hold_give_up(struct holder *h, const char *why)
{
	unsigned device = h->device;
	struct error err;

	/* Do not wait for the child, because it may hang. */
	if (h->child > 0)
		(void)kill(h->child, SIGKILL);
	hold_say(h, "%s: gave up: %s", h->mountpoint, why);
	end_agents(h);
	if (hold_end_mount(h->mountpoint, device, &err) < 0)
		hold_say(h, "%s", err.msg);
	/* A process may wait in the kernel, and have the connection. */
	if (connection(h) >= 0 && !hold_unmounted(h))
		connection_refuse(
			connection(h), stored_fd(h, "refrain-requests"));
	hold_drop_all(h);
	return h->argv ? 1 : -1;
}

/* Returns the time for which the daemon has served; 0 if it has not. */
static long served_ms(const struct holder *h, long now)
{
	return h->ready ? now - h->ready_ms : 0;
}

/* Handle the end of a daemon that joined. Its link is closed, so all its
 * threads have ended, and none of them can take a request any more. */
static void daemon_left(struct holder *h)
{
	long now = now_ms();
	const char *over;

	(void)close(h->link);
	h->link = -1;
	end_agents(h);
	/* If no daemon has ever served the mount, no program waits for it. */
	if (connection(h) < 0 || hold_unmounted(h) || !h->served) {
		hold_drop_all(h);
		return;
	}
	over = hold_ends_note(&h->ends, false, served_ms(h, now), now);
	if (over) {
		(void)hold_give_up(h, over);
		return;
	}
	if (h->ready)
		h->down_ms = now;
	h->ready = false;
	hold_say(h, "%s: the daemon has ended; waiting for another one",
		h->mountpoint);
}

/* Accept a daemon that joins. Only one daemon at a time can have a link. */
static void let_in(struct holder *h, int link)
{
	if (h->link >= 0 && hold_closed(h->link))
		daemon_left(h);
	if (h->link < 0 && hold_answer(link, h->stored, h->n))
		h->link = link;
	else
		(void)close(link);
}

/* Is the process the daemon of this mount? Only the daemon may store
 * descriptors and take them back. */
static bool is_daemon(const struct holder *h, pid_t pid)
{
	return h->child > 0 ? pid == h->child
			    : h->link >= 0 && pid == hold_peer(h->link);
}

static void act_on(void *arg, struct said *said)
{
	struct holder *h = arg;
	char name[HOLD_NAME_BYTES] = "", buf[PATH_MAX];

	if (!h->argv && said->fd >= 0 &&
		hold_value(said->text, "X_REFRAIN_JOIN", buf, sizeof(buf))) {
		let_in(h, said->fd);
		return;
	}
	if (!is_daemon(h, said->pid))
		said->text[0] = '\0';
	(void)hold_value(said->text, "FDNAME", name, sizeof(name));
	if (hold_value(said->text, "X_REFRAIN_MOUNTPOINT", buf, sizeof(buf)))
		memcpy(h->mountpoint, buf, sizeof(buf));
	if (hold_value(said->text, "FDSTORE", buf, sizeof(buf)) &&
		said->fd >= 0) {
		hold_keep(h, name, said->fd);
		said->fd = -1;
	}
	if (hold_value(said->text, "FDSTOREREMOVE", buf, sizeof(buf)))
		hold_drop_named(h, name);
	start_agents(h, said);
	if (hold_value(said->text, "STOPPING", buf, sizeof(buf)))
		tell_above(h, "STOPPING=1");
	if (hold_value(said->text, "READY", buf, sizeof(buf)))
		hold_ready(h);
	if (said->fd >= 0)
		(void)close(said->fd);
}

static void hear_all(struct holder *h)
{
	hold_hear_queued(h->socket.fd, act_on, h);
}

/* -- The daemon ----------------------------------------------------------- */

static void set_oom_score(int score)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "we");

	if (!f)
		return;
	(void)fprintf(f, "%d", score);
	(void)fclose(f); /* the write fails if this user may not set it */
}

/* Execute the daemon. Runs in the child. */
static void hold_exec(const struct holder *h)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (h->background)
		(void)setsid(); /* a daemon without a holder does so, too */
	set_oom_score(h->oom_score);
	if (h->served && chdir(h->cwd) < 0)
		_exit(127);
	(void)setenv("NOTIFY_SOCKET", h->socket.address, 1);
	(void)setenv("REFRAIN_HELD", h->served ? "again" : "first", 1);
	hold_pass(h->stored, h->n);
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
		h->next_ms = now_ms() + FORK_PAUSE_MS;
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

/* Handle the end of a daemon that was reaped: none of its threads can take a
 * request any more. Returns the exit status of this process; -1: continue. */
static int child_ended(struct holder *h, int status)
{
	bool failed = !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
	long now = now_ms();
	const char *over;
	char buf[64];

	hear_all(h);
	end_agents(h);
	h->child = 0;
	if (connection(h) < 0)
		return as_exit(status);
	/* the mount was unmounted before the daemon ended */
	if (hold_unmounted(h))
		return 0;
	if (h->ready)
		h->down_ms = now;
	/* The daemon has ended by request, to leave the mount to the next one.
	 */
	if (h->ready && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		failed = false;
	hold_say(h, "%s: the daemon %s; starting it again", h->mountpoint,
		how(status, buf, sizeof(buf)));
	over = hold_ends_note(&h->ends, failed, served_ms(h, now), now);
	if (over)
		return hold_give_up(h, over);
	h->next_ms = now + (failed ? hold_ends_pause_ms(&h->ends, now) : 0);
	return -1;
}

static int hold_reap(struct holder *h)
{
	int status, end = -1;
	pid_t pid;

	while (end < 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < HOLD_AGENTS; i++)
			if (pid == h->agent[i])
				h->agent[i] = 0;
		if (pid == h->child)
			end = child_ended(h, status);
	}
	return end;
}

/* Look whether the daemon was killed and cannot end. That happens while one of
 * its threads waits in the kernel for a lock, whose owner is a program that
 * waits for the daemon. No signal reports this state. The sign of it: the first
 * thread is dead, but the process cannot be reaped. */
static void look_for_stuck_child(struct holder *h, long now)
{
	if (!h->ready || h->child == 0 || proc_state(h->child) != 'Z') {
		h->stuck_ms = 0;
		return;
	}
	if (h->stuck_ms == 0)
		h->stuck_ms = now;
	/* the process may end within the next moments */
	if (now - h->stuck_ms < STUCK_MS)
		return;
	hold_say(h,
		"%s: the daemon has died, but one of its threads still waits "
		"in the kernel",
		h->mountpoint);
	h->ready = false;
	h->down_ms = h->stuck_ms;
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
	if (h->child > 0 || s.ssi_signo == SIGHUP)
		return -1;
	/* With --socket, a daemon that has a link continues without this
	 * process. */
	if (!h->argv && (h->link >= 0 || h->n == 0))
		return 0;
	(void)hold_give_up(h, "told to end while no daemon served");
	return 1;
}

static bool is_down(const struct holder *h)
{
	return h->n > 0 && !(has_daemon(h) && h->ready);
}

/* Returns how many ms to wait in poll(); -1: without limit. */
static int hold_wait_ms(const struct holder *h, long now)
{
	long until = -1;

	if (h->child == 0 && h->argv)
		until = h->next_ms;
	if (is_down(h) && h->served &&
		(until < 0 || h->down_ms + h->timeout_ms < until))
		until = h->down_ms + h->timeout_ms;
	/* Wake up to look for a stuck child, which no signal reports. */
	if (h->ready && h->child > 0 && (until < 0 || now + STUCK_MS < until))
		until = now + STUCK_MS;
	if (until < 0)
		return -1;
	return until > now ? (int)(until - now) : 0;
}

static int on_time(struct holder *h)
{
	long now = now_ms();

	look_for_stuck_child(h, now);
	if (is_down(h) && h->served && now - h->down_ms >= h->timeout_ms)
		return hold_give_up(
			h, "no daemon served for --recover-timeout");
	if (h->child == 0 && h->argv && now >= h->next_ms)
		hold_start(h);
	return -1;
}

/* Check whether the mount was unmounted while no daemon served it. */
static int hold_ended(struct holder *h)
{
	hold_drop_all(h);
	return h->argv ? 0 : -1;
}

static int hold_run(struct holder *h)
{
	int end = -1;

	while (end < 0) {
		/* Poll the connection only while no daemon serves it. Otherwise
		 * each request of a program would wake this process. */
		struct pollfd p[] = {
			{.fd = h->signals, .events = POLLIN},
			{.fd = h->socket.fd, .events = POLLIN},
			{.fd = has_daemon(h) ? -1 : connection(h)},
			{.fd = h->link},
		};

		if (poll(p, 4, hold_wait_ms(h, now_ms())) < 0 && errno != EINTR)
			return hold_give_up(h, strerror(errno));
		if (p[1].revents)
			hear_all(h);
		if (p[0].revents)
			end = hold_on_signal(h);
		/* The daemon of the polled link has ended. hear_all() may have
		 * accepted another daemon since. */
		if (end < 0 && h->link >= 0 && h->link == p[3].fd &&
			(p[3].revents & POLLHUP))
			daemon_left(h);
		if (end < 0 && (p[2].revents & POLLERR))
			end = hold_ended(h);
		if (end < 0)
			end = on_time(h);
	}
	hold_socket_remove(&h->socket);
	return end;
}

/* -- The start ------------------------------------------------------------ */

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
	/* Lock the pages of this process in memory, if the limit of locked
	 * memory allows it. */
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

	if (strcmp(name, "--socket") == 0 || strcmp(name, "--join") == 0) {
		*(name[2] == 's' ? &h->path : &h->join) = value;
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

/* With --join: get the descriptors from another holder, and execute the daemon
 * in place of this process. */
static int hold_become(struct holder *h)
{
	int link = hold_join(h->join, h->stored, &h->n);

	if (link < 0)
		return 1;
	hold_pass(h->stored, h->n);
	hold_setenv("REFRAIN_LINK", link);
	(void)setenv("FDSTORE", "1", 1);
	(void)setenv("NOTIFY_SOCKET", h->join, 1);
	(void)execvp(h->argv[0], h->argv);
	(void)fprintf(stderr, "refrain: hold: cannot run '%s': %s\n",
		h->argv[0], strerror(errno));
	return 127;
}

int main(int argc, char **argv)
{
	static struct holder h = {
		.link = -1,
		.ready_fd = -1,
		.timeout_ms = (long)RECOVER_TIMEOUT_S * MS_PER_S,
	};
	int i = 1, rc;

	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2)
		if (!hold_option(&h, argv[i], argv[i + 1]))
			return hold_usage_error(argv[i]);
	/* With --socket no command may follow the options; without it one must.
	 */
	if (h.path ? i != argc || h.join
		   : i + 1 >= argc || strcmp(argv[i], "--") != 0)
		return hold_usage_error(i < argc ? argv[i] : "--");
	h.argv = h.path ? NULL : argv + i + 1;
	if (h.join)
		return hold_become(&h);
	h.background = h.ready_fd >= 0;
	h.above = getenv("NOTIFY_SOCKET");
	h.above = h.above ? strdup(h.above) : NULL;
	if (!getcwd(h.cwd, sizeof(h.cwd)))
		(void)strcpy(h.cwd, "/");
	if (h.ready_fd >= 0)
		(void)fcntl(h.ready_fd, F_SETFD, FD_CLOEXEC);
	openlog("refrain-hold", LOG_PID, LOG_DAEMON);
	rc = hold_socket_open(&h.socket, h.path);
	if (rc < 0) {
		hold_say(&h, "cannot listen at '%s': %s", h.path ? h.path : "@",
			strerror(-rc));
		return 1;
	}
	rc = hold_signals(&h);
	if (rc < 0) {
		hold_say(&h, "cannot start: %s", strerror(-rc));
		return 1;
	}
	protect(&h);
	return hold_run(&h);
}

/* SPDX-License-Identifier: MIT */
/*
 * The agent of a notifier; see agent.h. The socket belongs to one thread at a
 * time, which has set `busy`: a thread that calls agent_do(), or the agent's
 * own thread, which waits for the end of the process.
 *
 *   none --again()--> asked --says that it begins--> runs --ends, hangs--> none
 *
 * A process that waits in the kernel, in state D, counts as hanging only after
 * a long time, because it may be frozen. Messages that it had not answered are
 * sent again to the next process.
 */
#include "mount/fs/agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/notifier.h"
#include "common/base/proc.h"
#include "common/base/send_fds.h"

/* Interval of checks while a process does not answer. */
#define LOOK_MS 1000
/* A process that has not begun, or that has a task but does not wait in the
 * kernel, is given up after this many checks. */
#define IDLE_LOOKS 5
/* The same limit for a process that may wait in the kernel. It doubles each
 * time, up to the maximum, because the next process waits for the same lock. */
#define WAIT_LOOKS 20
#define WAIT_LOOKS_MAX 640
/* Time until the next request for a process, if none could be had. */
#define AGAIN_NS (60 * NS_PER_S)
/* Minimum time between starts of processes that end at once. */
#define PAUSE_NS NS_PER_S

enum answer {
	ANSWERED,
	ENDED,	/* the process has ended or is stopped, or has done nothing */
	WAITED, /* for too long */
};

struct agent {
	uint32_t magic;
	struct agent_config config; /* set once */
	pthread_t thread;	    /* set once */
	int wake_fd; /* an eventfd: `fd` has changed, or `stopping` */
	atomic_bool stopping;
	pthread_mutex_t lock; /* guards the next two members */
	pthread_cond_t cond;
	bool busy;	/* a thread uses the members below */
	int fd;		/* -1: there is no process */
	int connection; /* -1: none */
	bool connected; /* the process has the connection */
	/* -1: the process has not begun; 0: its number is not visible here */
	pid_t pid;
	int wait_looks;
	/* time at which a process was requested last; 0: never */
	uint64_t asked_ns;
	/* time at which to request one again if there is none; 0: never */
	uint64_t again_ns;
};

/* -- One process ----------------------------------------------------------- */

static bool agent_quits(const struct agent *a, const atomic_bool *quit)
{
	return atomic_load(&a->stopping) || (quit && atomic_load(quit));
}

/* Check a process that has not answered yet. Returns ANSWERED to wait longer.
 */
static enum answer agent_look(const struct agent *a, int looks, int *idle)
{
	char state = a->pid > 0 ? proc_state(a->pid) : 0;

	if (state == 'T' || state == 't')
		return ENDED; /* nothing shows how long this state lasts */
	*idle = a->pid < 0 || (a->pid > 0 && state != 'D') ? *idle + 1 : 0;
	if (*idle == IDLE_LOOKS)
		return ENDED;
	return looks < a->wait_looks ? ANSWERED : WAITED;
}

static enum answer agent_answers(
	struct agent *a, int *answer, const atomic_bool *quit)
{
	struct pollfd p = {.fd = a->fd, .events = POLLIN};
	enum answer said = ANSWERED;
	struct got_fds got;
	int idle = 0;

	for (int looks = 1; poll(&p, 1, LOOK_MS) <= 0; looks++) {
		if (!agent_quits(a, quit))
			said = agent_look(a, looks, &idle);
		if (said != ANSWERED || agent_quits(a, quit))
			return said == ANSWERED ? ENDED : said;
	}
	if (fds_receive(a->fd, answer, sizeof(*answer), &got, 0) !=
		sizeof(*answer))
		return ENDED;
	a->pid = got.pid > 0 ? got.pid : 0;
	return ANSWERED;
}

/* The process says that it begins, and gets the connection then. */
static enum answer agent_begins(struct agent *a, const atomic_bool *quit)
{
	enum answer said = ANSWERED;
	int ignored;

	if (a->pid < 0)
		said = agent_answers(a, &ignored, quit);
	if (said != ANSWERED || a->connection < 0 || a->connected)
		return said;
	if (fds_send(a->fd, "", 1, &a->connection, 1, 0) < 0)
		return ENDED;
	said = agent_answers(a, &ignored, quit);
	a->connected = said == ANSWERED;
	return said;
}

static enum answer agent_try(struct agent *a, const struct agent_message *m,
	unsigned count, const atomic_bool *quit, int *answer)
{
	enum answer said = agent_begins(a, quit);

	if (said != ANSWERED)
		return said;
	for (unsigned i = 0; i < count; i++)
		if (fds_send(a->fd, m[i].bytes, m[i].size, &m[i].fd,
			    m[i].fd >= 0, 0) < 0)
			return ENDED;
	for (unsigned i = 0; said == ANSWERED && i < count; i++)
		said = agent_answers(a, answer, quit);
	if (said == ANSWERED)
		a->wait_looks = WAIT_LOOKS;
	return said;
}

static void agent_close(struct agent *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
}

/* Replace the process, because it is useless now or there was none. */
static void agent_replace(struct agent *a, const atomic_bool *quit)
{
	const struct agent_config *c = &a->config;
	struct event e = {.dir = c->mountpoint};

	agent_close(a);
	a->asked_ns = clock_now_ns();
	a->again_ns = a->asked_ns + AGAIN_NS;
	a->pid = -1;
	a->connected = false;
	a->fd = c->again(c->arg);
	if (a->fd >= 0 && agent_begins(a, quit) != ANSWERED)
		agent_close(a);
	if (agent_quits(a, quit))
		return;
	e.kind = a->fd >= 0 ? c->replaced : c->lost;
	event_report(c->events, &e);
}

/* -- Who may use it -------------------------------------------------------- */

static void agent_wake(struct agent *a)
{
	const uint64_t one = 1;

	/* The counter of the eventfd cannot be full. */
	(void)!write(a->wake_fd, &one, sizeof(one));
}

static void agent_take(struct agent *a)
{
	LOCK_SCOPE(&a->lock);
	while (a->busy)
		pthread_cond_wait(&a->cond, &a->lock);
	a->busy = true;
}

static void agent_leave(struct agent *a)
{
	LOCK_SCOPE(&a->lock);
	a->busy = false;
	pthread_cond_broadcast(&a->cond);
}

static int agent_do_taken(struct agent *a, const struct agent_message *m,
	unsigned count, const atomic_bool *quit)
{
	enum answer said;
	int answer = 0;

	if (a->fd < 0 && a->again_ns > 0 && clock_now_ns() >= a->again_ns)
		agent_replace(a, quit);
	for (int tries = 0; a->fd >= 0 && tries < 2;) {
		said = agent_try(a, m, count, quit, &answer);
		if (said == ANSWERED)
			return answer;
		if (agent_quits(a, quit))
			return -ECANCELED;
		if (said == WAITED && a->wait_looks < WAIT_LOOKS_MAX)
			a->wait_looks *= 2;
		tries += said == ENDED;
		agent_replace(a, quit);
	}
	return agent_quits(a, quit) ? -ECANCELED : -ESHUTDOWN;
}

int agent_do(struct agent *a, const struct agent_message *messages,
	unsigned count, const atomic_bool *quit)
{
	uint64_t asked_ns;
	int rc;

	agent_take(a);
	asked_ns = a->asked_ns;
	rc = agent_do_taken(a, messages, count, quit);
	if (a->asked_ns != asked_ns)
		agent_wake(a);
	agent_leave(a);
	return rc;
}

void agent_connect(struct agent *a, int fd)
{
	agent_take(a);
	a->connection = fd;
	agent_leave(a);
}

/* -- The end of the process ------------------------------------------------ */

/* Returns the socket, or -1, when no other thread uses it. */
static int agent_idle_socket(struct agent *a, uint64_t *asked_ns)
{
	LOCK_SCOPE(&a->lock);
	while (a->busy)
		pthread_cond_wait(&a->cond, &a->lock);
	*asked_ns = a->asked_ns;
	return a->fd;
}

static bool has_hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

/* Wait until the process ends, the socket changes, or for a time in ms. */
static void agent_wait(struct agent *a, int fd, int ms)
{
	struct pollfd p[] = {{.fd = a->wake_fd, .events = POLLIN}, {.fd = fd}};
	uint64_t times;

	(void)poll(p, 2, ms); /* after an error, the caller calls this again */
	if (p[0].revents & POLLIN)
		(void)!read(a->wake_fd, &times, sizeof(times));
}

static void agent_mend(struct agent *a)
{
	agent_take(a);
	if (a->fd >= 0 && has_hung_up(a->fd) && !atomic_load(&a->stopping))
		agent_replace(a, NULL);
	agent_leave(a);
}

static void *agent_main(void *arg)
{
	struct agent *a = OBJECT(agent, arg);

	while (!atomic_load(&a->stopping)) {
		uint64_t asked_ns, now_ns = clock_now_ns();
		int fd = agent_idle_socket(a, &asked_ns);
		uint64_t due_ns = asked_ns + PAUSE_NS;

		if (fd < 0 || !has_hung_up(fd))
			agent_wait(a, fd, -1);
		else if (asked_ns > 0 && due_ns > now_ns)
			agent_wait(a, -1,
				(int)((due_ns - now_ns) / NS_PER_MS) + 1);
		else
			agent_mend(a);
	}
	return NULL;
}

/* -- Life ------------------------------------------------------------------ */

static int agent_start(struct agent *a)
{
	int rc;

	a->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (a->wake_fd < 0)
		return -errno;
	rc = -pthread_create(&a->thread, NULL, agent_main, a);
	if (rc < 0)
		(void)close(a->wake_fd);
	return rc;
}

int agent_new(struct agent **out, const struct agent_config *config, int socket,
	struct error *err)
{
	struct agent *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	MAGIC_BEGIN(a, agent);
	a->config = *config;
	a->fd = socket;
	a->connection = a->pid = -1;
	a->wait_looks = WAIT_LOOKS;
	lock_init(&a->lock, RANK_AGENT);
	(void)pthread_cond_init(&a->cond, NULL);
	rc = agent_start(a);
	if (rc < 0) {
		free(a);
		return error_set(err, rc, "cannot start a thread: %m");
	}
	*out = a;
	return 0;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	atomic_store(&a->stopping, true);
	agent_wake(a);
	(void)pthread_join(a->thread, NULL);
	agent_close(a);
	(void)close(a->wake_fd);
	(void)pthread_cond_destroy(&a->cond); /* no thread waits any more */
	(void)pthread_mutex_destroy(&a->lock);
	MAGIC_END(a);
	free(a);
}

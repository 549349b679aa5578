/* SPDX-License-Identifier: MIT */
/*
 * The control server. Its acceptor thread owns the listening socket, starts a
 * thread for each connection, and joins threads that have ended. `lock` guards
 * the two lists of connections; no other lock is taken with it.
 */
#include "mount/daemon/control_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "mount/daemon/control_conn_impl.h"
#include "common/control/control_place.h"

/* Delay before the next accept() if descriptors have run out. */
#define ACCEPT_RETRY_MS 100

struct ctl_server {
	uint32_t magic;
	struct place place; /* set once */
	/* Set once; an eventfd that becomes readable when the server stops */
	int stop_fd;
	const struct ctl_command *commands; /* set once */
	pthread_t acceptor;		    /* set once */
	unsigned patience_ms;		    /* set once */
	pthread_mutex_t lock;
	/* Connections whose thread runs; guarded by lock */
	struct list serving;
	/* Connections whose thread must be joined; guarded by lock */
	struct list ended;
	/* Number of connections in both lists; acceptor only */
	unsigned nconns;
};

/* The argument of a connection's thread. */
struct conn_start {
	struct ctl_server *server;
	struct ctl_conn *conn;
};

static void *conn_thread(void *arg)
{
	struct conn_start start = *(struct conn_start *)arg;

	free(arg);
	conn_serve(start.conn);
	/* Only shut the socket down here. Its descriptor stays open until this
	 * thread has been joined, so that its number cannot be used for another
	 * file before. */
	(void)shutdown(start.conn->fd, SHUT_RDWR);
	LOCK_SCOPE(&start.server->lock);
	list_del(&start.conn->link);
	list_add_tail(&start.server->ended, &start.conn->link);
	return NULL;
}

/* Join the threads that have ended. Only the acceptor calls this. */
static void server_reap(struct ctl_server *s)
{
	struct list ended;

	list_init(&ended);
	pthread_mutex_lock(&s->lock);
	list_splice_tail(&ended, &s->ended);
	pthread_mutex_unlock(&s->lock);
	LIST_FOREACH_SAFE(pos, next, &ended) {
		struct ctl_conn *conn =
			CONTAINER_OF(pos, struct ctl_conn, link);

		(void)pthread_join(conn->thread, NULL); /* cannot fail */
		conn_free(conn);
		s->nconns--;
	}
}

static int server_start_thread(struct ctl_server *s, struct ctl_conn *conn)
{
	struct conn_start *start = malloc(sizeof(*start));
	int rc;

	if (!start)
		return -ENOMEM;
	*start = (struct conn_start){s, conn};
	/* Take the lock before the thread is created, because the thread moves
	 * the connection to the list `ended` when it ends. */
	LOCK_SCOPE(&s->lock);
	rc = pthread_create(&conn->thread, NULL, conn_thread, start);
	if (rc != 0) {
		free(start);
		return -rc;
	}
	list_add_tail(&s->serving, &conn->link);
	return 0;
}

/* Serve a new connection, or refuse it and send the peer the reason. Owns the
 * descriptor from now on. */
static void admit(struct ctl_server *s, int fd)
{
	struct ctl_conn *conn =
		conn_new(fd, s->stop_fd, s->patience_ms, s->commands);

	if (!conn) {
		(void)close(fd);
		return;
	}
	if (!place_allows(&s->place, fd))
		(void)ctl_fail(conn, "this mount belongs to another user");
	else if (s->nconns >= CTL_CONNECTIONS_MAX)
		(void)ctl_fail(conn, "all %d connections are in use; try again",
			CTL_CONNECTIONS_MAX);
	else if (server_start_thread(s, conn) < 0)
		(void)ctl_fail(conn, "cannot start a thread; try again");
	else {
		s->nconns++;
		return;
	}
	conn_free(conn);
}

/* Wait for a connection. Returns 1 if there may be one, 0 to try again, or
 * -EPIPE when the server is being stopped. */
static int wait_for_peer(struct ctl_server *s)
{
	struct pollfd fds[2] = {
		{.fd = s->stop_fd, .events = POLLIN},
		{.fd = s->place.fd, .events = POLLIN},
	};

	if (poll(fds, 2, -1) < 0)
		return 0;
	return fds[0].revents ? -EPIPE : 1;
}

static void *acceptor_thread(void *arg)
{
	struct ctl_server *s = OBJECT(ctl_server, arg);
	int rc;

	while ((rc = wait_for_peer(s)) >= 0) {
		int fd = -1;

		if (rc > 0)
			fd = accept4(s->place.fd, NULL, NULL,
				SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			struct pollfd stop = {
				.fd = s->stop_fd, .events = POLLIN};

			(void)poll(&stop, 1, ACCEPT_RETRY_MS);
		}
		server_reap(s);
		if (fd >= 0)
			admit(s, fd);
	}
	return NULL;
}

static void server_free(struct ctl_server *s)
{
	if (s->stop_fd >= 0)
		(void)close(s->stop_fd);
	(void)pthread_mutex_destroy(&s->lock);
	MAGIC_END(s);
	free(s);
}

static int server_run(struct ctl_server *s, struct error *err)
{
	int rc = -pthread_create(&s->acceptor, NULL, acceptor_thread, s);

	if (rc < 0) {
		place_close(&s->place);
		return error_set(err, rc, "cannot start a thread: %m");
	}
	return 0;
}

int ctl_server_start(struct ctl_server **out, const char *mountpoint,
	const char *group, const struct ctl_command *commands,
	unsigned patience_ms, struct error *err)
{
	struct ctl_server *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return error_set(err, -ENOMEM, "cannot start: %m");
	MAGIC_BEGIN(s, ctl_server);
	s->commands = commands;
	s->patience_ms = patience_ms;
	list_init(&s->serving);
	list_init(&s->ended);
	lock_init(&s->lock, RANK_CTL);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (s->stop_fd < 0)
		rc = error_set(err, -errno, "cannot make an eventfd: %m");
	if (rc == 0)
		rc = place_open(&s->place, mountpoint, group, err);
	if (rc == 0)
		rc = server_run(s, err);
	if (rc < 0)
		server_free(s);
	else
		*out = s;
	return rc;
}

const char *ctl_server_path(const struct ctl_server *s)
{
	return s->place.path;
}

/* Returns a connection whose thread runs, or NULL. */
static struct ctl_conn *any_serving(struct ctl_server *s)
{
	LOCK_SCOPE(&s->lock);
	if (list_empty(&s->serving))
		return NULL;
	return LIST_FIRST(&s->serving, struct ctl_conn, link);
}

void ctl_server_stop(struct ctl_server *s)
{
	const uint64_t one = 1;
	struct ctl_conn *conn;

	if (!s)
		return;
	/* Cannot fail, because it is the first write to this eventfd. */
	(void)!write(s->stop_fd, &one, sizeof(one));
	(void)pthread_join(s->acceptor, NULL);
	place_close(&s->place);
	while ((conn = any_serving(s))) {
		/* Before it ended, the thread has moved its connection to
		 * `ended`. Remove the connection, because otherwise
		 * server_reap() would join the thread again. */
		(void)pthread_join(conn->thread, NULL);
		pthread_mutex_lock(&s->lock);
		list_del(&conn->link);
		pthread_mutex_unlock(&s->lock);
		conn_free(conn);
	}
	server_reap(s);
	server_free(s);
}

/* SPDX-License-Identifier: MIT */
/* The thread of a loop: sockets and timers of libcurl, and the queue of
 * transfers. Everything in this file runs only on that thread. */
#include "origin/web/web_loop_impl.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

/* -- libcurl's wishes ------------------------------------------------------ */

/*
 * Have the kernel acknowledge the next packets at once. A server may send
 * headers and body separately without setting TCP_NODELAY, as radosgw does by
 * default. Such a server sends the body only after the headers were
 * acknowledged, and the kernel would delay that by 40 ms. Sending a request
 * ends this mode, so it is set for each one.
 */
static void acknowledge_at_once(curl_socket_t fd)
{
	int one = 1;

	/* If this fails, answers are only slower. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof(one));
}

static int on_socket(
	CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct web_loop *l = OBJECT(web_loop, arg);
	uint32_t events = 0;

	(void)easy;
	(void)known;
	if (what == CURL_POLL_REMOVE) {
		loop_unwatch(&l->loop, fd);
		return 0;
	}
	if (what & CURL_POLL_IN) {
		events |= EPOLLIN;
		acknowledge_at_once(fd);
	}
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	return loop_watch(&l->loop, fd, events, (uint64_t)fd) < 0 ? -1 : 0;
}

static int on_curl_timer(CURLM *multi, long ms, void *arg)
{
	struct web_loop *l = OBJECT(web_loop, arg);

	(void)multi;
	l->curl_due_ns =
		ms < 0 ? 0 : clock_now_ns() + (uint64_t)ms * NS_PER_MS + 1;
	return 0;
}

/* Create libcurl's multi handle. If this fails, every transfer ends with
 * -ENOMEM. */
static void open_multi(struct web_loop *l)
{
	unsigned share = l->e->config.depth / l->e->config.loops + 1;

	l->multi = curl_multi_init();
	if (!l->multi)
		return;
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
	/* Set a fixed limit, because with its own limit libcurl would drop idle
	 * connections. */
	curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)share);
}

/* -- The queue ------------------------------------------------------------- */

void transfer_start(struct loop *l, struct transfer *t)
{
	t->loop = l;
	t->state = QUEUED;
	t->refused = t->why = 0;
	t->verify = 0;
	t->told_slow = false;
	t->waits = 0;
	list_add_tail(&web_loop_of(l)->queue, &t->node);
}

void transfer_start_later(struct loop *l, struct transfer *t, uint64_t pause_ns)
{
	transfer_start(l, t);
	list_del(&t->node);
	t->state = PAUSED;
	t->since_ns = clock_now_ns() + pause_ns;
	list_add_tail(&web_loop_of(l)->paused, &t->node);
}

void transfer_cancel(struct transfer *t)
{
	if (t->state == TRANSFER_IDLE)
		return;
	transfer_drop(t);
}

static unsigned web_loop_room(const struct web_loop *l)
{
	unsigned share = loops_depth(l->e) / l->e->nloops;

	share = share ? share : 1;
	return share > l->active ? share - l->active : 0;
}

static void send_queued(struct web_loop *l)
{
	while (!list_empty(&l->queue) && web_loop_room(l) > 0) {
		struct transfer *t =
			LIST_FIRST(&l->queue, struct transfer, node);

		transfer_send(l, t);
	}
}

/* Resume transfers whose pause is over. Returns the time at which the next
 * pause ends, or `until` if that is earlier. */
static uint64_t end_pauses(struct web_loop *l, uint64_t now, uint64_t until)
{
	LIST_FOREACH_SAFE(n, next, &l->paused) {
		struct transfer *t = CONTAINER_OF(n, struct transfer, node);

		if (t->since_ns <= now) {
			list_del(n);
			t->state = QUEUED;
			list_add_tail(&l->queue, n);
		} else if (t->since_ns < until) {
			until = t->since_ns;
		}
	}
	return until;
}

/* Call slow() for the transfers that have become slow. They are in order of
 * sending, so the first one that is not slow ends the search. */
static uint64_t tell_slow(struct web_loop *l, uint64_t now, uint64_t until)
{
	struct list *n = list_next(&l->sent);

	while (n != &l->sent) {
		struct transfer *t = CONTAINER_OF(n, struct transfer, node);

		n = list_next(n);
		if (t->told_slow || !t->ops->slow)
			continue;
		if (t->since_ns + l->slow_ns > now) {
			if (t->since_ns + l->slow_ns < until)
				until = t->since_ns + l->slow_ns;
			break;
		}
		t->told_slow = true;
		t->ops->slow(t);
	}
	return until;
}

/* -- The thread ------------------------------------------------------------ */

static void handle_event(struct loop *base, uint64_t data, uint32_t events)
{
	struct web_loop *l = web_loop_of(base);
	int running, mask = 0;

	if (events & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR | CURL_CSELECT_IN;
	(void)curl_multi_socket_action(
		l->multi, (curl_socket_t)data, mask, &running);
}

static void handle_curl_timer(struct web_loop *l)
{
	int running;

	if (!l->curl_due_ns || l->curl_due_ns > clock_now_ns())
		return;
	l->curl_due_ns = 0;
	(void)curl_multi_socket_action(
		l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static void web_loop_turn(struct web_loop *l)
{
	uint64_t now = clock_now_ns();
	uint64_t until;

	(void)end_pauses(l, now, LOOP_NEVER);
	(void)tell_slow(l, now, LOOP_NEVER);
	send_queued(l);
	atomic_store_explicit(&l->held, l->active, memory_order_relaxed);
	/* Compute the time only now, because sending adds pauses and transfers
	 * that may become slow. */
	until = end_pauses(l, now, LOOP_NEVER);
	until = tell_slow(l, now, until);
	if (l->curl_due_ns && l->curl_due_ns < until)
		until = l->curl_due_ns;
	loop_wait(&l->loop, until, handle_event);
	handle_curl_timer(l);
	if (l->multi)
		transfer_reap(l);
}

/* End all transfers of a list when the loop stops. */
static void end_all(struct list *head)
{
	while (!list_empty(head)) {
		struct transfer *t = LIST_FIRST(head, struct transfer, node);

		transfer_drop(t);
		t->ops->done(t, -ECANCELED);
	}
}

void *web_loop_main(void *arg)
{
	struct web_loop *l = OBJECT(web_loop, arg);

	open_multi(l);
	while (loop_run_posts(&l->loop))
		web_loop_turn(l);
	end_all(&l->queue);
	end_all(&l->paused);
	end_all(&l->sent);
	end_all(&l->arriving);
	(void)loop_run_posts(&l->loop);
	web_loop_release_handles(l);
	if (l->multi)
		curl_multi_cleanup(l->multi);
	return NULL;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests while the host's name is being looked up. The test is the resolver:
 * libcurl calls the getaddrinfo() of this program.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "suite.h"
#include "origin/web/web.h"

#define REQUESTS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
/* Guarded by `lock`. */
static int lookups, leave, status_of_all, ended;
static bool silent, differs;

static struct counters counters;
static struct transfer transfers[REQUESTS];
static struct loop *loop;

/* Returns an address at which no server listens. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node,
	const char *service, const struct addrinfo *hints,
	struct addrinfo **out)
{
	struct sockaddr_in *at = calloc(1, sizeof(*at));
	bool fail;

	(void)service;
	(void)hints;
	ck_assert_str_eq(node, "a.name.test");
	pthread_mutex_lock(&lock);
	lookups++;
	pthread_cond_broadcast(&cond);
	while (leave < lookups && silent)
		pthread_cond_wait(&cond, &lock);
	fail = silent;
	pthread_mutex_unlock(&lock);
	*out = calloc(1, sizeof(**out));
	at->sin_family = AF_INET;
	at->sin_port = htons(1);
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(*out)->ai_family = AF_INET;
	(*out)->ai_socktype = SOCK_STREAM;
	(*out)->ai_addrlen = sizeof(*at);
	(*out)->ai_addr = (struct sockaddr *)(void *)at;
	if (!fail)
		return 0;
	free(at);
	free(*out);
	return EAI_AGAIN;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *list)
{
	free(list->ai_addr);
	free(list);
}

static int named_prepare(struct transfer *t, struct request_text *text)
{
	(void)t;
	bytes_text(&text->url, "http://a.name.test:1/");
	return 0;
}

static void named_done(struct transfer *t, int status)
{
	(void)t;
	pthread_mutex_lock(&lock);
	if (ended++ == 0)
		status_of_all = status;
	differs |= status != status_of_all;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
}

static const struct transfer_ops named_ops = {
	.prepare = named_prepare,
	.done = named_done,
};

static void start_all(struct post *p)
{
	(void)p;
	for (int i = 0; i < REQUESTS; i++) {
		transfers[i] = (struct transfer){.ops = &named_ops};
		transfer_start(loop, &transfers[i]);
	}
}

/* Send all requests at once, and wait until they have ended. */
static struct loops *ask_all(bool by_silent)
{
	struct loops_config config = {.loops = 1,
		.depth = REQUESTS,
		.connect_ms = 400,
		.counters = &counters};
	struct error err = {""};
	struct loops *e;
	struct post begin;

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	silent = by_silent;
	ck_assert_msg(loops_new(&e, &config, &err) == 0, "%s", err.msg);
	loop = loops_pick(e);
	post_init(&begin, start_all);
	loop_post(loop, &begin);
	pthread_mutex_lock(&lock);
	while (ended < REQUESTS)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	return e;
}

START_TEST(test_requests_share_a_lookup)
{
	struct loops *e = ask_all(false);

	ck_assert_int_eq(lookups, 1);
	ck_assert_int_eq(status_of_all, -ECONNREFUSED);
	ck_assert(!differs);
	ck_assert_int_eq(lookups, 1);
	loops_free(e);
}
END_TEST

START_TEST(test_a_silent_name_server_holds_few_lookups)
{
	struct loops *e = ask_all(true);

	ck_assert_int_eq(status_of_all, -ETIMEDOUT);
	ck_assert(!differs);
	ck_assert_int_le(lookups, 2);
	loops_free(e);
	pthread_mutex_lock(&lock);
	leave = lookups;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("resolver");
	TCase *t = case_of(s, "resolver");

	tcase_add_test(t, test_requests_share_a_lookup);
	tcase_add_test(t, test_a_silent_name_server_holds_few_lookups);
	return run_suite(s);
}

/* SPDX-License-Identifier: MIT */
/*
 * Tests of the limits of loaders that share: their memory, the end of a run,
 * storage that hangs, a host that sends arbitrary messages.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/clock.h"
#include "common/base/send_fds.h"
#include "loader_lease.h"
#include "loader/share/share.h"
#include "shared_fixture.h"

#define HOSTS 200
#define MESSAGES 40 /* number of messages of each kind */

/* -- Datasets -------------------------------------------------------------- */

/* Write a dataset of many images, whose files are never opened. */
static void write_list(char list[256], unsigned images)
{
	char text[IMAGES * 24];
	size_t used = 0;

	for (unsigned i = 0; i < images; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
			"c%u/%04u.jpg\n", i % CLASSES, i);
	(void)snprintf(list, 256, "%s/list", top);
	write_file(list, text, used);
}

START_TEST(test_another_dataset_is_refused)
{
	struct refrain_config c = shared_config(2), other = c;
	struct refrain_loader *l = open_loader(&c), *m;
	char list[256];

	write_list(list, IMAGES - 1);
	other.dataset = list;
	other.root = top;
	ck_assert_int_eq(refrain_open(&m, &other), -ESTALE);
	ck_assert_msg(strstr(refrain_message(NULL), "another dataset"), "%s",
		refrain_message(NULL));
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* The host opens its dataset when the jobs have joined. */
START_TEST(test_a_dataset_that_changes_meanwhile_is_an_error)
{
	struct refrain_config c = shared_config(0);
	char path[256], image[256];

	image_path(path, 299);
	(void)snprintf(image, sizeof(image), "%s/image", top);
	for (unsigned n = 0; n < 10; n++) {
		struct refrain_loader *l = open_loader(&c);
		const struct refrain_batch *b;
		int rc;

		ck_assert_int_eq(rename(path, image), 0);
		while ((rc = refrain_next(l, &b, WAIT_MS)) == 1)
			refrain_release(b);
		/* The host may have opened the dataset before the change. */
		ck_assert_msg(rc == 0 || rc == -ESTALE, "%d: %s", rc,
			refrain_message(l));
		ck_assert(rc == 0 || strstr(refrain_message(l), "changed"));
		ck_assert_int_eq(refrain_close(l), 0);
		ck_assert_int_eq(rename(image, path), 0);
	}
}
END_TEST

/* -- Memory, and the end --------------------------------------------------- */

START_TEST(test_the_memory_is_the_slots_and_little_more)
{
	struct refrain_config c = shared_config(0);
	const struct refrain_batch *b[8];
	struct refrain_loader *l;
	const void *base;
	size_t bytes, batch;
	unsigned n = 0;
	int rc;

	c.batches_ahead = 3;
	c.height = 224;
	l = open_loader(&c);
	while ((rc = refrain_next(l, &b[n], WAIT_MS)) == 1)
		ck_assert_uint_lt(++n, 8);
	ck_assert_int_eq(rc, -EBUSY);
	ck_assert_uint_eq(n, 4);
	ck_assert_int_eq(refrain_memory(l, &base, &bytes), 0);
	batch = b[0]->data_bytes;
	ck_assert_uint_ge(bytes, n * batch);
	ck_assert_uint_le(bytes, n * batch + (1 << 20));
	for (unsigned i = 0; i < n; i++) {
		const char *at = b[i]->data;

		ck_assert(at >= (const char *)base &&
			at + batch <= (const char *)base + bytes);
		refrain_release(b[i]);
	}
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* 600 examples: 18 batches of 32, and 24 that are dropped. */
START_TEST(test_the_last_shared_batch_is_dropped_if_it_is_short)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l[2];
	struct simple r[2];

	c.epochs = 2;
	c.window = 256;
	c.share_batch = 32;
	c.last = REFRAIN_LAST_DROP;
	for (int i = 0; i < 2; i++) {
		struct refrain_config lone;

		c.batch = i ? 8 : 32;
		lone = alone(c);
		l[i] = open_loader(&c);
		simple_open(&r[i], &lone);
	}
	for (int n = 0; n < 18; n++)
		for (int i = 0; i < 2; i++)
			for (int k = 0; k < (i ? 4 : 1); k++)
				ck_assert_uint_eq(
					step_of(l[i], &r[i]), i ? 8 : 32);
	for (int i = 0; i < 2; i++) {
		const struct refrain_batch *b;

		ck_assert_uint_eq(refrain_steps_left(l[i]), 0);
		ck_assert_int_eq(refrain_next(l[i], &b, WAIT_MS), 0);
		ck_assert_uint_eq(stats_of(l[i]).fresh, 576);
		ck_assert_int_eq(refrain_close(l[i]), 0);
		simple_close(&r[i]);
	}
}
END_TEST

/* Returns the number of open descriptors. Checks that exec() closes all of them
 * from 3 on. */
static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 3; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0)
			continue;
		ck_assert_int_ne(flags & FD_CLOEXEC, 0);
		n++;
	}
	return n;
}

START_TEST(test_descriptors_are_closed_by_exec_and_at_the_end)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l[2];
	const struct refrain_batch *b;
	unsigned before;

	for (int fd = 3; fd < 256; fd++) /* descriptors of the test's runner */
		if (fcntl(fd, F_GETFD) >= 0)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	before = descriptors();
	for (int i = 0; i < 2; i++)
		l[i] = open_loader(&c);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(refrain_next(l[i], &b, WAIT_MS), 1);
		refrain_release(b);
	}
	ck_assert_uint_gt(descriptors(), before);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(refrain_close(l[i]), 0);
	ck_assert_uint_eq(descriptors(), before);
}
END_TEST

/* -- Storage that hangs ---------------------------------------------------- */

/* Shut down both ends of the connection with the host, which are in this
 * process. */
static void cut_connection(void)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_un at;
		socklen_t bytes = sizeof(at);
		int type = 0;
		socklen_t type_bytes = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) ==
				0 &&
			type == SOCK_SEQPACKET &&
			getpeername(fd, (struct sockaddr *)&at, &bytes) == 0)
			ck_assert_int_eq(shutdown(fd, SHUT_RDWR), 0);
	}
}

/* Wait until only the hanging read is left. A busy machine delays other reads,
 * too. */
static void until_it_hangs(struct refrain_loader *l)
{
	const struct refrain_batch *b;
	int rc;

	do {
		while ((rc = refrain_next(l, &b, 1000)) == 1)
			refrain_release(b);
		ck_assert_msg(
			rc == -ETIMEDOUT, "%d: %s", rc, refrain_message(l));
	} while (!strstr(refrain_message(l), "c9/0299.jpg"));
}

/* A write lease on the last image is never given up, so opening that image
 * hangs. The job loses its connection, leaves its hanging host behind, and
 * becomes the host again. */
START_TEST(test_a_host_whose_storage_hangs_is_left_behind)
{
	struct refrain_config c = shared_config(0);
	char path[256], list[256];
	const struct refrain_batch *b;
	struct refrain_loader *l;
	uint64_t then_ns;
	int lease;

	if (_i)
		ck_assert_int_eq(setenv("REFRAIN_DISABLE", "io_uring", 1), 0);
	image_path(path, 299);
	write_list(list, IMAGES);
	c.dataset = list;
	c.root = top;
	c.flags = REFRAIN_FLAG_IN_ORDER;
	c.batches_ahead = 1;
	c.reads_ahead = 4;
	look_for_no_leaks();
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	refrain_release(b);
	lease = lease_begin(path);
	until_it_hangs(l);
	cut_connection();
	while (stats_of(l).share_takeovers == 0)
		(void)poll(NULL, 0, 1);
	until_it_hangs(l);
	/* Closing takes less than 1 s; more on a busy machine, but not without
	 * a limit. */
	then_ns = clock_now_ns();
	ck_assert_int_ge(refrain_close(l), 0);
	ck_assert_uint_lt(
		clock_now_ns() - then_ns, 5 * NS_PER_S * TIME_LIMIT_FACTOR);
	lease_end(lease);
	(void)unsetenv("REFRAIN_DISABLE");
}
END_TEST

/* -- A call that does not return ------------------------------------------- */

/* In a thread with this flag, poll() waits for `hold_ends` instead. */
static __thread bool is_held;
static sem_t hold_begins, hold_ends;

/* The program's own poll() replaces that of the C library. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec ts = {.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * (long)NS_PER_MS};

	if (is_held && timeout_ms) {
		(void)sem_post(&hold_begins);
		while (sem_wait(&hold_ends) < 0)
			;
	}
	return ppoll(fds, n, timeout_ms < 0 ? NULL : &ts, NULL);
}

static void *held_caller(void *arg)
{
	const struct refrain_batch *b;

	is_held = true;
	return (void *)(intptr_t)refrain_next(arg, &b, WAIT_MS);
}

/* No other job joins, so the call waits. */
START_TEST(test_a_call_that_does_not_return_is_left_behind)
{
	struct refrain_config c = shared_config(2);
	struct refrain_loader *l = open_loader(&c);
	pthread_t thread;
	void *rc;

	look_for_no_leaks();
	ck_assert_int_eq(sem_init(&hold_begins, 0, 0), 0);
	ck_assert_int_eq(sem_init(&hold_ends, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, held_caller, l), 0);
	while (sem_wait(&hold_begins) < 0)
		;
	ck_assert_int_gt(refrain_close(l), 0);
	ck_assert_int_eq(sem_post(&hold_ends), 0);
	ck_assert_int_eq(pthread_join(thread, &rc), 0);
	ck_assert_int_eq((int)(intptr_t)rc, -ESHUTDOWN);
}
END_TEST

/* -- A host that says anything --------------------------------------------- */

static uint32_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 1664525 + 1013904223;
	return (drawn >> 8) % below;
}

static struct share_msg message_of_a_host(void)
{
	static const enum share_type types[] = {SHARE_BATCH, SHARE_VIEW,
		SHARE_CHANGE, SHARE_SEGMENT, SHARE_ALONE, SHARE_END,
		SHARE_REFUSE, SHARE_WAIT};
	struct share_msg m = {.type = types[draw(8)]};

	if (m.type == SHARE_BATCH)
		m.batch = (struct share_batch){.step = draw(3),
			.slot = draw(6),
			.count = 1 + draw(20),
			.fresh = 1};
	else if (m.type == SHARE_SEGMENT)
		m.segment = (struct share_segment){
			.bytes = 1 << 20, .slot_bytes = 1 << 18, .slots = 4};
	else if (m.type == SHARE_CHANGE)
		m.change = (struct share_change){draw(9), 3 + draw(3), 2};
	else if (m.type == SHARE_REFUSE)
		m.refuse.error = -1 - (int)draw(40);
	else if (m.type == SHARE_VIEW)
		m.view.slots = m.view.jobs_n = draw(4);
	else
		m.step.step = draw(9);
	return m;
}

/* Send a message: a third of them with other bytes, and a segment without
 * memory, or with memory that is not sealed. */
static void say_anything(int to, const struct share_msg *m, int memory)
{
	char bytes[8192];
	size_t size = share_msg_print(m, bytes, sizeof(bytes));
	bool lends = m->type == SHARE_SEGMENT;

	if (draw(3) == 0)
		bytes[draw((uint32_t)size)] = (char)draw(256);
	/* This fails if the other end is closed. */
	(void)fds_send(
		to, bytes, size, &memory, lends && draw(2), MSG_DONTWAIT);
}

/* Accept and serve one connection. No process listens after that. */
static void *host_of_lies(void *arg)
{
	CLEANUP_FD int listener = *(int *)arg;
	CLEANUP_FD int fd = accept(listener, NULL, NULL);
	struct share_msg m = {.type = SHARE_WELCOME, .welcome.begun = draw(2)};
	struct share_area area;
	char hello[8192];

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(share_area_new(&area, 1 << 20), 0);
	ck_assert_int_gt(read(fd, hello, sizeof(hello)), 0);
	m.welcome.step = draw(8) ? 0 : draw(30);
	m.welcome.changes = draw(8) ? 0 : draw(3);
	say_anything(fd, &m, -1);
	for (unsigned i = draw(MESSAGES); i > 0; i--) {
		m = message_of_a_host();
		say_anything(fd, &m, draw(2) ? area.fd : fd);
	}
	share_area_release(&area);
	return NULL;
}

static int listen_to_lie(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(at.sun_path, sizeof(at.sun_path),
		"%.64s/refrain-share/x.sock", run_dir);
	(void)unlink(at.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	return fd;
}

/* The job may continue with a host of its own, or not at all. */
START_TEST(test_a_job_bears_a_host_that_says_anything)
{
	struct refrain_config c = shared_config(0);
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	unsigned opened = 0, failed = 0;

	ck_assert_int_eq(refrain_close(l), 0); /* its directory exists now */
	c.open_timeout_ms = 1000;
	for (unsigned n = 0; n < HOSTS; n++) {
		int listener = listen_to_lie(), rc;
		pthread_t thread;

		ck_assert_int_eq(
			pthread_create(&thread, NULL, host_of_lies, &listener),
			0);
		rc = refrain_open(&l, &c);
		opened += rc == 0;
		for (int i = 0; rc == 0 && i < 3; i++) {
			int got = refrain_next(l, &b, 1);

			failed += got < 0 && got != -ETIMEDOUT;
			if (got == 1)
				refrain_release(b);
		}
		if (rc == 0)
			ck_assert_int_eq(refrain_close(l), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
	}
	ck_assert_uint_gt(opened, 0);
	ck_assert_uint_gt(failed, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shared_limits");
	TCase *t = case_with(s, "limits", make_all, remove_all);

	tcase_add_test(t, test_another_dataset_is_refused);
	tcase_add_test(t, test_the_memory_is_the_slots_and_little_more);
	tcase_add_test(t, test_the_last_shared_batch_is_dropped_if_it_is_short);
	tcase_add_test(t, test_descriptors_are_closed_by_exec_and_at_the_end);
	tcase_add_loop_test(
		t, test_a_host_whose_storage_hangs_is_left_behind, 0, 2);
	tcase_add_test(t, test_a_dataset_that_changes_meanwhile_is_an_error);
	tcase_add_test(t, test_a_job_bears_a_host_that_says_anything);
	t = case_with(s, "calls", make_all, remove_all);
	tcase_add_test(t, test_a_call_that_does_not_return_is_left_behind);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

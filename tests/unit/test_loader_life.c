/* SPDX-License-Identifier: MIT */
/*
 * Tests of the handle: what refrain_open() refuses, closing, the descriptor,
 * fork, several loaders, statistics.
 */
#include "loader_fixture.h"

#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/clock.h"
#include "suite.h"

/* -- Opening --------------------------------------------------------------- */

static void refused(const struct refrain_config *c, int rc, const char *word)
{
	struct refrain_loader *l = (struct refrain_loader *)top;

	ck_assert_int_eq(refrain_open(&l, c), rc);
	ck_assert_ptr_null(l);
	ck_assert_msg(strstr(refrain_message(NULL), word), "%s",
		refrain_message(NULL));
}

#define REFUSED(member, value, rc)                                             \
	do {                                                                   \
		struct refrain_config bad = config_of();                       \
                                                                               \
		bad.member = value;                                            \
		refused(&bad, rc, #member);                                    \
	} while (0)

START_TEST(test_open_names_the_member_that_is_wrong)
{
	REFUSED(size, 0, -EINVAL);
	REFUSED(dataset, NULL, -EINVAL);
	REFUSED(batch, 0, -EINVAL);
	REFUSED(source, 9, -EINVAL);
	REFUSED(echo, 0.5, -EINVAL);
	REFUSED(echo, (double)NAN, -EINVAL);
	REFUSED(echo_point, 3, -EINVAL);
	REFUSED(rank, 1, -EINVAL);
	REFUSED(window, 3, -EINVAL);
	REFUSED(flags, 0x8000, -EINVAL);
	REFUSED(type, 3, -EINVAL);
	REFUSED(layout, -1, -EINVAL);
	REFUSED(augment, 7, -EINVAL);
	REFUSED(area_min, 2, -EINVAL);
	REFUSED(aspect_min, 2, -EINVAL);
	REFUSED(max_damage, 1.5, -EINVAL);
	REFUSED(policy, 3, -EINVAL);
	REFUSED(nice, 20, -EINVAL);
	REFUSED(cpu_count, 1, -EINVAL);
	REFUSED(state_bytes, 1, -EINVAL);
	REFUSED(sample_bytes, 10, -EINVAL);
	REFUSED(memory_bytes, 1000, -ENOMEM);
}
END_TEST

static void *misaligned(void *ctx, size_t bytes)
{
	char *p = aligned_alloc(64, bytes + 64);

	(void)ctx;
	return p ? p + 8 : NULL;
}

static void free_misaligned(void *ctx, void *p, size_t bytes)
{
	(void)ctx;
	(void)bytes;
	free((char *)p - 8);
}

START_TEST(test_a_mean_of_zero_can_be_set)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;

	c.type = REFRAIN_F32;
	ck_assert_int_eq(refrain_config_set(&c, "std", "1"), 0);
	refused(&c, -EINVAL, "mean is not set");
	ck_assert_int_eq(refrain_config_set(&c, "mean", "0"), 0);
	ck_assert_int_eq(refrain_open(&l, &c), 0);
	refrain_close(l);
}
END_TEST

START_TEST(test_open_refuses_what_it_would_misread)
{
	static const uint32_t cpus[] = {0, 100000}, far[] = {900};
	struct refrain_config c = config_of();

	c.mean[0] = c.mean[1] = c.mean[2] = 0.5F; /* a mean without a std */
	refused(&c, -EINVAL, "std[0]");
	c.std[0] = c.std[1] = 0.5F;
	refused(&c, -EINVAL, "std[2]");
	c.std[2] = -1;
	refused(&c, -EINVAL, "std[2]");
	c.std[2] = 0.5F;
	c.mean[1] = 1e9F;
	refused(&c, -EINVAL, "mean[1]");
	c.mean[0] = c.mean[1] = c.mean[2] = 0; /* a std without a mean */
	refused(&c, -EINVAL, "mean is not set");
	c = config_of();
	c.cpus = cpus;
	c.cpu_count = 2;
	refused(&c, -EINVAL, "cpus[1]");
	c.cpus = far;
	c.cpu_count = 1;
	refused(&c, -EINVAL, "cpus[0]");
	c = config_of();
	c.flags = REFRAIN_FLAG_PAD_RANKS | REFRAIN_FLAG_EQUAL_RANKS;
	refused(&c, -EINVAL, "flags");
	c = config_of();
	c.alloc = misaligned;
	c.free = free_misaligned;
	refused(&c, -EINVAL, "aligned");
}
END_TEST

START_TEST(test_open_says_which_dataset_it_cannot_open)
{
	struct refrain_config c = config_of();

	c.dataset = "no/such/place";
	refused(&c, -ENOENT, "no/such/place");
}
END_TEST

/* The program was built with a later header of the library, or with an earlier
 * one. */
START_TEST(test_open_takes_a_longer_struct_only_if_its_tail_is_zero)
{
	struct {
		struct refrain_config c;
		uint64_t later[4];
	} longer = {.c = config_of()};
	struct refrain_config c = config_of();
	struct refrain_loader *l;

	longer.c.size = sizeof(longer);
	l = open_loader(&longer.c);
	ck_assert_int_eq(refrain_close(l), 0);
	longer.later[3] = 1;
	refused(&longer.c, -E2BIG, "does not know");
	c.size = offsetof(struct refrain_config, threads);
	l = open_loader(&c);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_open_with_the_memory_it_asks_for_opens)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	struct timespec later[2] = {{.tv_nsec = UTIME_OMIT}};

	/* A dataset that has just changed is not indexed; opening an index
	 * needs less memory. */
	later[1].tv_sec = time(NULL) + 3600;
	ck_assert_int_eq(utimensat(AT_FDCWD, top, later, 0), 0);
	c.memory_bytes = 1000;
	ck_assert_int_eq(refrain_open(&l, &c), -ENOMEM);
	c.memory_bytes =
		strtoull(strstr(refrain_message(NULL), " need ") + 6, NULL, 10);
	l = open_loader(&c);
	ck_assert_int_eq(refrain_close(l), 0);
	c.memory_bytes--;
	ck_assert_int_eq(refrain_open(&l, &c), -ENOMEM);
}
END_TEST

/* -- Waiting --------------------------------------------------------------- */

START_TEST(test_descriptor_is_readable_while_next_would_not_wait)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	struct pollfd p = {.fd = refrain_fd(l), .events = POLLIN};
	const struct refrain_batch *b;
	int rc;

	for (;;) {
		ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
		rc = refrain_next(l, &b, 0);
		ck_assert_int_ge(rc, 0);
		if (!rc)
			break;
		refrain_release(b);
	}
	/* a call at the end does not wait, so the descriptor polls readable */
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

static void *wait_for_ever(void *arg)
{
	const struct refrain_batch *b;
	int rc;

	while ((rc = refrain_next(arg, &b, -1)) == 1)
		refrain_release(b);
	return (void *)(intptr_t)rc;
}

/* decode() waits until the test opens the gate. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint arrived; /* number of calls of decode() that have begun */

static int decode_at_gate(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	(void)ctx;
	(void)in;
	atomic_fetch_add(&arrived, 1);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	memset(out->data, 1, 8);
	out->bytes = 8;
	return 0;
}

START_TEST(test_timeout_names_stage_and_file)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;

	c.decode = decode_at_gate;
	c.decoded_max_bytes = c.sample_bytes = 8;
	pthread_mutex_lock(&gate);
	l = open_loader(&c);
	while (!stats_of(l).files_read)
		(void)sched_yield();
	do /* repeat until the slowest read has arrived */
		ck_assert_int_eq(refrain_next(l, &b, 20), -ETIMEDOUT);
	while (strstr(refrain_message(l), " read"));
	ck_assert_msg(strstr(refrain_message(l), "decod") &&
			strstr(refrain_message(l), ".jpg"),
		"%s", refrain_message(l));
	pthread_mutex_unlock(&gate);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* A caller that checks for signals waits in many short calls. */
START_TEST(test_waiting_in_many_calls_is_waiting)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stage st;
	uint64_t from_ns;

	c.decode = decode_at_gate;
	c.decoded_max_bytes = c.sample_bytes = 8;
	c.batches_ahead = 1;
	l = open_loader(&c);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	pthread_mutex_lock(&gate);
	refrain_release(b);
	/* take the batches that were made before */
	while (refrain_next(l, &b, 20) == 1)
		refrain_release(b);
	from_ns = clock_now_ns();
	while (clock_now_ns() < from_ns + 200 * NS_PER_MS)
		ck_assert_int_eq(refrain_next(l, &b, 20), -ETIMEDOUT);
	pthread_mutex_unlock(&gate);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	refrain_release(b);
	st = stats_of(l).stages[REFRAIN_STAGE_TRAINER];
	ck_assert_uint_ge(st.wait_ns, 200 * NS_PER_MS);
	ck_assert_uint_lt(st.busy_ns, st.wait_ns / 2);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_close_ends_a_call_that_waits)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	pthread_t t;
	void *rc;

	c.decode = decode_at_gate;
	c.decoded_max_bytes = c.sample_bytes = 8;
	pthread_mutex_lock(&gate);
	l = open_loader(&c);
	ck_assert_int_eq(pthread_create(&t, NULL, wait_for_ever, l), 0);
	while (!atomic_load(&arrived))
		(void)sched_yield();
	/* The decode of one example never ends. The loader is left behind after
	 * 0.9 s, or later on a busy machine. */
	uint64_t then_ns = clock_now_ns();
	left_behind = l;
	ck_assert_int_eq(refrain_close(l), 1);
	ck_assert_uint_lt(
		clock_now_ns() - then_ns, 5 * NS_PER_S * TIME_LIMIT_FACTOR);
	ck_assert_int_eq(pthread_join(t, &rc), 0);
	ck_assert_int_eq((int)(intptr_t)rc, -ESHUTDOWN);
	pthread_mutex_unlock(&gate);
}
END_TEST

START_TEST(test_idle_loader_uses_no_processor_time)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	struct timespec a, b, pause = {.tv_nsec = 200000000};
	struct refrain_stats st;

	do /* repeat until all batches have been made */
		st = stats_of(l);
	while (st.stages[REFRAIN_STAGE_AUGMENT].items < 4 * 16 ||
		st.files_read < 4 * 16 + 64);
	/* the pause is the time that the test measures */
	(void)nanosleep(&pause, NULL);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	(void)nanosleep(&pause, NULL);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	ck_assert_int_lt(
		(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec,
		2000000);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* -- Processes and neighbours ---------------------------------------------- */

/* Check in a child that calls that need a changing state return -ECHILD, or 0
 * if they return a number. */
static bool refuses_a_child(struct refrain_loader *l)
{
	struct refrain_stats st = {.size = sizeof(st)};
	struct refrain_failure why = {.size = sizeof(why)};
	const struct refrain_batch *b;
	char buf[8192];

	return refrain_next(l, &b, -1) == -ECHILD &&
		refrain_next_into(l, buf, sizeof(buf), NULL, 0, 0) == -ECHILD &&
		refrain_save(l, buf, sizeof(buf)) == -ECHILD &&
		refrain_save_at(l, 1, buf, sizeof(buf)) == -ECHILD &&
		refrain_echo_log(l, buf, sizeof(buf)) == -ECHILD &&
		refrain_stats_get(l, &st) == -ECHILD &&
		refrain_stats_json(l, buf, sizeof(buf)) == -ECHILD &&
		refrain_failure_get(l, &why) == -ECHILD &&
		refrain_fd(l) == -ECHILD && refrain_step(l) == 0 &&
		refrain_steps_left(l) == 0 && refrain_epoch_end(l, 0) == 0 &&
		strstr(refrain_message(l), "fork");
}

/* Check in a child that calls for constant properties work. */
static bool tells_a_child(struct refrain_loader *l)
{
	return refrain_examples(l) > 0 && refrain_classes(l) > 0 &&
		refrain_path(l, 0) && refrain_class_name(l, 0, NULL);
}

START_TEST(test_child_of_a_fork_can_only_close)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	const struct refrain_batch *b;
	int status;
	pid_t pid;

	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	pid = fork();
	if (pid == 0) {
		bool right = refuses_a_child(l) && tells_a_child(l);

		refrain_release(b);
		right = refrain_close(l) == 0 && right;
		_exit(right ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	refrain_release(b);
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_two_loaders_do_not_know_of_each_other)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l[2];
	const struct refrain_batch *b;
	uint64_t n[2] = {0};
	bool going = true;

	c.world = 2;
	for (c.rank = 0; c.rank < 2; c.rank++)
		l[c.rank] = open_loader(&c);
	while (going) {
		going = false;
		for (unsigned i = 0; i < 2; i++) {
			if (refrain_next(l[i], &b, WAIT_MS) != 1)
				continue;
			n[i] += b->count;
			going = true;
			refrain_release(b);
		}
	}
	ck_assert_uint_eq(n[0], IMAGES / 2);
	ck_assert_uint_eq(n[1], IMAGES / 2);
	ck_assert_int_eq(refrain_close(l[0]), 0);
	ck_assert_int_eq(refrain_close(l[1]), 0);
}
END_TEST

START_TEST(test_loader_runs_on_the_processors_it_is_given)
{
	struct refrain_config c = config_of();
	uint32_t cpus[] = {0};
	struct refrain_loader *l;
	const struct refrain_batch *b;
	cpu_set_t allowed;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(cpus[0], &allowed))
		cpus[0]++;
	c.cpus = cpus;
	c.cpu_count = 1;
	c.nice = 5;
	l = open_loader(&c);
	cpus[0] = 4095; /* the loader has its own copy */
	ck_assert_int_eq(refrain_next(l, &b, WAIT_MS), 1);
	refrain_release(b);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

/* -- Figures --------------------------------------------------------------- */

static uint64_t process_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void cpu_adds_up(const struct refrain_stats *st)
{
	uint64_t sum = 0;

	for (int i = REFRAIN_STAGE_READ; i <= REFRAIN_STAGE_AUGMENT; i++) {
		ck_assert_uint_gt(st->stages[i].cpu_ns, 0);
		sum += st->stages[i].cpu_ns;
	}
	ck_assert_uint_le(sum, process_cpu_ns());
	ck_assert_uint_gt(st->stages[REFRAIN_STAGE_DECODE].cpu_ns,
		st->stages[REFRAIN_STAGE_AUGMENT].cpu_ns / 100);
}

START_TEST(test_statistics_add_up)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l;
	const struct refrain_batch *b;
	struct refrain_stats st;
	char json[8192];

	c.echo = 4;
	c.epochs = 2;
	l = open_loader(&c);
	while (refrain_next(l, &b, WAIT_MS) == 1)
		refrain_release(b);
	st = stats_of(l);
	ck_assert_uint_eq(st.fresh, 2 * IMAGES);
	ck_assert_uint_eq(st.served, 8 * IMAGES);
	ck_assert_uint_eq(st.steps, 8 * IMAGES / 16);
	ck_assert_uint_eq(st.stages[REFRAIN_STAGE_AUGMENT].items, 8 * IMAGES);
	ck_assert_uint_eq(st.stages[REFRAIN_STAGE_DECODE].items, 2 * IMAGES);
	ck_assert_uint_eq(st.stages[REFRAIN_STAGE_READ].items, 2 * IMAGES);
	cpu_adds_up(&st);
	ck_assert_uint_ge(st.min_lag_steps, 1);
	ck_assert_double_ge(st.mean_lag_steps, (double)st.min_lag_steps);
	ck_assert_uint_gt(st.pool_bytes_peak, 0);
	ck_assert_uint_eq(st.pool_bytes, 0);
	ck_assert_double_gt(st.t_upstream_ms, 0);
	ck_assert_double_gt(st.t_downstream_ms, 0);
	ck_assert_int_gt(refrain_stats_json(l, json, sizeof(json)), 0);
	ck_assert_ptr_nonnull(strstr(json, "\"served\":2400,"));
	ck_assert_int_eq(json[strlen(json) - 1], '}');
	ck_assert_int_eq(refrain_stats_json(l, json, 100), -ENOSPC);
	ck_assert_int_eq(refrain_close(l), 0);
}
END_TEST

START_TEST(test_names_are_those_of_the_dataset)
{
	struct refrain_config c = config_of();
	struct refrain_loader *l = open_loader(&c);
	size_t bytes;

	ck_assert_uint_eq(refrain_examples(l), IMAGES);
	ck_assert_uint_eq(refrain_classes(l), CLASSES);
	ck_assert_str_eq(refrain_path(l, 0), "c0/0000.jpg");
	ck_assert_ptr_null(refrain_path(l, IMAGES));
	ck_assert_str_eq(refrain_class_name(l, 3, &bytes), "c3");
	ck_assert_uint_eq(bytes, 2);
	ck_assert_ptr_null(refrain_class_name(l, -1, &bytes));
	ck_assert_ptr_null(refrain_class_name(l, CLASSES, &bytes));
	ck_assert_int_eq(refrain_close(l), 0);
	ck_assert_int_eq(refrain_close(NULL), 0);
	refrain_release(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loader_life");
	TCase *tc = case_of(s, "life");

	tcase_add_unchecked_fixture(tc, fixture_make, fixture_remove);
	tcase_add_test(tc, test_open_names_the_member_that_is_wrong);
	tcase_add_test(tc, test_a_mean_of_zero_can_be_set);
	tcase_add_test(tc, test_open_refuses_what_it_would_misread);
	tcase_add_test(tc, test_open_says_which_dataset_it_cannot_open);
	tcase_add_test(
		tc, test_open_takes_a_longer_struct_only_if_its_tail_is_zero);
	tcase_add_test(tc, test_open_with_the_memory_it_asks_for_opens);
	tcase_add_test(
		tc, test_descriptor_is_readable_while_next_would_not_wait);
	tcase_add_test(tc, test_timeout_names_stage_and_file);
	tcase_add_test(tc, test_waiting_in_many_calls_is_waiting);
	tcase_add_test(tc, test_close_ends_a_call_that_waits);
	tcase_add_test(tc, test_idle_loader_uses_no_processor_time);
	tcase_add_test(tc, test_child_of_a_fork_can_only_close);
	tcase_add_test(tc, test_two_loaders_do_not_know_of_each_other);
	tcase_add_test(tc, test_loader_runs_on_the_processors_it_is_given);
	tcase_add_test(tc, test_statistics_add_up);
	tcase_add_test(tc, test_names_are_those_of_the_dataset);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

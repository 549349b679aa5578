/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/loader/work/work.h with a real board and a real store: the
 * samples that workers make are those of the simple loader, each example is
 * decoded once, and what happens to claims when workers compete and servers
 * restart. The test is the reader.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/clock.h"
#include "loader/service/service_call.h"
#include "loader/service/service_conf.h"
#include "loader/service/service_print.h"
#include "loader/service/service_state.h"
#include "loader/service/service_value.h"
#include "loader/work/work.h"
#include "loader_fixture.h"

#define NAME "set"
#define SECRET "s3cret"
#define PATIENCE_NS (120 * NS_PER_S)

/* -- Servers --------------------------------------------------------------- */

struct place {
	char path[100];
	pid_t pid;
	struct asker *asker;
};

static struct place board, store;

static void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static bool place_answers(const struct place *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", p->path);
	ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	(void)close(fd);
	return ok;
}

static void place_start(struct place *p, bool evicts)
{
	(void)unlink(p->path);
	p->pid = fork();
	ck_assert_int_ge(p->pid, 0);
	if (p->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execlp("memcached", "memcached", "-s", p->path, "-m",
			"64", "-t", "1", "-o",
			"no_slab_reassign,slab_chunk_max=16384",
			evicts ? "-B" : "-M", evicts ? "ascii" : "-v",
			geteuid() == 0 ? "-u" : NULL, "root", NULL);
		_exit(127);
	}
	while (!place_answers(p))
		pause_ms(2);
}

static void place_stop(struct place *p)
{
	ck_assert_int_eq(kill(p->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(p->pid, NULL, 0), p->pid);
}

static void place_open(struct place *p, const char *name, bool evicts)
{
	/* The path of a socket must be short. */
	(void)snprintf(p->path, sizeof(p->path), "/tmp/refrain-work-%d-%s",
		(int)getpid(), name);
	place_start(p, evicts);
	ck_assert_int_eq(asker_new(&p->asker, p->path, 1 << 20, 5000), 0);
}

static void place_close(struct place *p)
{
	asker_free(p->asker);
	place_stop(p);
	(void)unlink(p->path);
}

static void site_make(void)
{
	fixture_make();
	place_open(&board, "board", true);
	place_open(&store, "store", false);
}

static void site_remove(void)
{
	place_close(&board);
	place_close(&store);
	fixture_remove();
}

static void tell(const char *key, const char *text, unsigned ttl_s)
{
	struct service_call c;

	call_put(&c, key, text, strlen(text), CALL_SET, 0, ttl_s);
	ck_assert_int_eq(calls_make(board.asker, &c, 1), 0);
	ck_assert(call_done(&c));
}

static bool ask(struct place *p, const char *key, char *value, size_t room,
	size_t *bytes)
{
	struct service_call c;

	call_get(&c, key, value, room);
	ck_assert_int_eq(calls_make(p->asker, &c, 1), 0);
	*bytes = c.bytes;
	return c.kind == META_VA;
}

/* -- The reader ------------------------------------------------------------ */

struct job {
	struct simple simple;
	struct hash128 id;
	struct reader_note note;
	uint32_t count; /* number of examples in a range */
	uint64_t fresh;
};

static void job_tell(struct job *j)
{
	char key[SERVICE_KEY_MAX], text[READER_NOTE_MAX];

	(void)reader_note_text(&j->note, text);
	(void)service_reader_key(key, j->id, "reader");
	tell(key, text, 600);
}

static void job_names(struct job *j)
{
	char key[SERVICE_KEY_MAX], digits[33];

	(void)service_job_key(key, j->id, "readers");
	tell(key, "reader", 600);
	*hash128_put(digits, j->id) = 0;
	tell(SERVICE_JOBS_KEY, digits, 600);
}

static void job_conf(struct job *j, const struct service_conf *conf)
{
	char key[SERVICE_KEY_MAX], text[SERVICE_CONF_MAX];
	struct error err;
	int len = service_conf_text(&j->simple.s, conf, text, &err);

	ck_assert_msg(len > 0, "%s", err.msg);
	j->id = service_job(text, (size_t)len);
	(void)service_job_key(key, j->id, "conf");
	tell(key, text, 600);
}

static struct service_conf conf_of(const struct job *j)
{
	struct service_conf conf = {.dataset = NAME,
		.examples = dataset_count(j->simple.ds),
		.fingerprint = dataset_fingerprint(j->simple.ds)};
	struct error err;

	ck_assert_int_eq(service_print(&conf.print, &err), 0);
	return conf;
}

static void job_open(struct job *j, const struct refrain_config *c)
{
	const struct schedule_config *settings;
	struct service_conf conf;

	*j = (struct job){.fresh = 0};
	simple_open(&j->simple, c);
	conf = conf_of(j);
	job_conf(j, &conf);
	settings = schedule_settings(&j->simple.schedule);
	j->fresh = schedule_fresh_count(&j->simple.schedule);
	j->note = (struct reader_note){.rank = settings->rank,
		.world = settings->world,
		.batch = settings->batch,
		.lag = settings->lag,
		.window = settings->window,
		.echo = settings->echo,
		.end = j->fresh,
		.host = "here"};
	j->note.state_bytes =
		(uint32_t)schedule_save(&j->simple.schedule, 0, j->note.state);
	j->count = range_examples(
		(settings->echo.p + settings->echo.q - 1) / settings->echo.q);
	job_tell(j);
	job_names(j);
}

static void job_close(struct job *j)
{
	simple_close(&j->simple);
}

/* Write the key of the range that begins at fresh number f. */
static void job_range(struct job *j, uint64_t f, char key[SERVICE_KEY_MAX])
{
	struct sample_name names[RANGE_EXAMPLES_MAX];
	struct schedule_slot slot;
	uint64_t need_by;
	uint32_t n = 0;

	while (n < j->count &&
		schedule_fresh(&j->simple.schedule, f + n, &slot, &need_by) ==
			0)
		names[n++] = (struct sample_name){
			slot.pass, slot.index, slot.servings};
	(void)service_range_key(key, j->id, range_name(names, n));
}

/* Wait until a range is done. Returns its mask. */
static uint32_t job_wait(struct job *j, uint64_t f)
{
	uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	char key[SERVICE_KEY_MAX], text[RANGE_STATE_MAX];
	struct range_state s;
	size_t bytes;

	job_range(j, f, key);
	for (;;) {
		if (ask(&board, key, text, sizeof(text), &bytes) &&
			range_state_parse(text, bytes, &s) == 0 &&
			s.kind == RANGE_DONE)
			break;
		ck_assert_msg(clock_now_ns() < end_ns, "%s is not done", key);
		pause_ms(5);
	}
	ck_assert_str_eq(s.store, store.path);
	return s.mask;
}

static void job_wait_all(struct job *j)
{
	for (uint64_t f = 0; f < j->fresh; f += j->count) {
		uint64_t n = j->fresh - f < j->count ? j->fresh - f : j->count;

		ck_assert_uint_eq(job_wait(j, f), UINT64_MAX >> (64 - n));
	}
}

/* Returns the sample of a serving, as it is in the store; NULL: the store does
 * not have it. */
static const uint8_t *job_sample(
	struct job *j, const struct schedule_slot *slot, struct sample_value *v)
{
	static char value[1 << 20];
	const struct sample_name name = {
		slot->pass, slot->index, slot->servings};
	char key[SERVICE_KEY_MAX];
	const uint8_t *pixels;
	size_t bytes;

	(void)service_sample_key(key, j->id, &name, slot->echo);
	if (!ask(&store, key, value, sizeof(value), &bytes))
		return NULL;
	pixels = sample_unseal(
		value, bytes, sample_seed(SECRET, strlen(SECRET)), key, v);
	ck_assert_ptr_nonnull(pixels);
	return pixels;
}

/* Check that all servings of the run are in the store, with the pixels that a
 * loader alone makes. */
static void job_compare(struct job *j)
{
	struct simple *r = &j->simple;
	size_t bytes = r->s.sample_bytes;
	uint8_t *got = malloc(bytes);
	uint32_t n;

	while ((n = schedule_next(&r->schedule, &r->cursor, r->slots)) > 0)
		for (uint32_t i = 0; i < n; i++) {
			struct sample_value v;
			struct crop crop;
			const uint8_t *pixels = job_sample(j, &r->slots[i], &v);

			ck_assert_ptr_nonnull(pixels);
			crop_of(&r->s.augment, r->slots[i].augment_seed,
				v.width, v.height, &crop);
			augment_finish(r->augmenter, &crop, pixels, got);
			ck_assert_mem_eq(got,
				simple_sample(
					r, &r->slots[i], r->slots[i].index),
				bytes);
		}
	free(got);
}

/* -- Workers --------------------------------------------------------------- */

struct worker {
	pthread_t thread;
	struct work_dataset dataset;
	struct work_config config;
	struct work_counts counts;
	struct error err;
	_Atomic bool stop;
	int rc;
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	w->rc = work_run(&w->config, &w->counts, &w->err);
	return NULL;
}

static void worker_init(struct worker *w)
{
	*w = (struct worker){.dataset = {NAME, top}};
	w->config = (struct work_config){.board = board.path,
		.store = store.path,
		.datasets = &w->dataset,
		.ndatasets = 1,
		.threads = 2,
		.secret = SECRET,
		.secret_bytes = strlen(SECRET),
		.stop = &w->stop};
}

static void worker_start(struct worker *w)
{
	worker_init(w);
	ck_assert_int_eq(pthread_create(&w->thread, NULL, worker_main, w), 0);
}

static void worker_stop(struct worker *w)
{
	w->stop = true;
	ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
	ck_assert_msg(w->rc == 0, "%s", w->err.msg);
}

/* -- Tests ----------------------------------------------------------------- */

static const double factors[] = {1, 2, 2.5, 4};
static const int types[] = {REFRAIN_U8, REFRAIN_F32, REFRAIN_F16, REFRAIN_F32};

START_TEST(test_samples_of_two_workers_are_those_of_a_lone_loader)
{
	struct refrain_config c = config_of();
	struct worker a, b;
	struct job j;

	c.echo = factors[_i];
	c.type = types[_i];
	c.layout = _i % 2 ? REFRAIN_NCHW : REFRAIN_NHWC;
	c.cutout = _i % 2 ? 9 : 0;
	c.jitter[0] = _i / 2 ? 0.4F : 0;
	c.epochs = 2;
	job_open(&j, &c);
	worker_start(&a);
	worker_start(&b);
	job_wait_all(&j);
	worker_stop(&a);
	worker_stop(&b);
	job_compare(&j);
	/* Each example is decoded once, whoever claims it, unless a claim
	 * expired because a thread did not run for seconds. */
	ck_assert_uint_ge(a.counts.decodes + b.counts.decodes, j.fresh);
	if (a.counts.lost + b.counts.lost == 0)
		ck_assert_uint_eq(a.counts.decodes + b.counts.decodes, j.fresh);
	ck_assert_uint_eq(a.counts.failed + b.counts.failed, 0);
	job_close(&j);
}
END_TEST

START_TEST(test_two_ranks_get_their_own_samples)
{
	struct refrain_config c = config_of();
	struct worker w;
	struct job j;

	c.world = 2;
	c.echo = 2;
	worker_start(&w);
	for (c.rank = 0; c.rank < 2; c.rank++) {
		job_open(&j, &c);
		job_wait_all(&j);
		job_compare(&j);
		job_close(&j);
	}
	worker_stop(&w);
	if (w.counts.lost == 0)
		ck_assert_uint_eq(w.counts.decodes, IMAGES);
}
END_TEST

START_TEST(test_a_damaged_example_is_left_to_the_reader)
{
	struct refrain_config c = config_of();
	struct worker w;
	struct job j;
	uint32_t bad = 0;
	char path[256];

	image_path(path, 17);
	write_file(path, "no image", 8);
	job_open(&j, &c);
	worker_start(&w);
	for (uint64_t f = 0; f < j.fresh; f += j.count) {
		uint64_t n = j.fresh - f < j.count ? j.fresh - f : j.count;

		bad += (uint32_t)n -
			(uint32_t)__builtin_popcount(job_wait(&j, f));
	}
	worker_stop(&w);
	ck_assert_uint_eq(bad, 1);
	ck_assert_uint_eq(w.counts.failed, 1);
	job_close(&j);
}
END_TEST

/* A claim of another worker stands until it expires or is deleted. */
START_TEST(test_a_claimed_range_is_left_alone_until_the_claim_ends)
{
	struct refrain_config c = config_of();
	char key[SERVICE_KEY_MAX], text[RANGE_STATE_MAX];
	struct worker w;
	struct service_call del;
	struct job j;
	size_t bytes;

	job_open(&j, &c);
	job_range(&j, 0, key);
	tell(key, "L reader", 600);
	worker_start(&w);
	for (uint64_t f = j.count; f < j.fresh; f += j.count)
		(void)job_wait(&j, f);
	ck_assert(ask(&board, key, text, sizeof(text), &bytes));
	ck_assert_int_eq(text[0], 'L');
	call_delete(&del, key, 0);
	ck_assert_int_eq(calls_make(board.asker, &del, 1), 0);
	(void)job_wait(&j, 0);
	worker_stop(&w);
	if (w.counts.lost == 0)
		ck_assert_uint_eq(w.counts.decodes, IMAGES);
	job_close(&j);
}
END_TEST

/* After a restart the board knows nothing. Readers write their keys again, and
 * the workers find the samples that are in the store already. */
START_TEST(test_a_board_that_restarts_costs_no_decodes)
{
	struct refrain_config c = config_of();
	struct service_conf conf;
	struct worker w;
	struct job j;

	job_open(&j, &c);
	worker_start(&w);
	job_wait_all(&j);
	place_stop(&board);
	place_start(&board, true);
	asker_free(board.asker);
	ck_assert_int_eq(asker_new(&board.asker, board.path, 1 << 20, 5000), 0);
	conf = conf_of(&j);
	job_conf(&j, &conf);
	job_tell(&j);
	job_names(&j);
	job_wait_all(&j);
	worker_stop(&w);
	job_compare(&j);
	if (w.counts.lost == 0)
		ck_assert_uint_eq(w.counts.decodes, IMAGES);
	ck_assert_uint_ge(w.counts.reused, IMAGES);
	job_close(&j);
}
END_TEST

START_TEST(test_what_nobody_needs_any_more_is_not_left_in_the_store)
{
	struct refrain_config c = config_of();
	char key[SERVICE_KEY_MAX], text[RANGE_STATE_MAX];
	uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
	struct schedule_slot slot;
	struct sample_value v;
	struct worker w;
	struct job j;
	uint64_t need_by;
	size_t bytes;

	c.epochs = 4;
	job_open(&j, &c);
	job_range(&j, 0, key);
	worker_start(&w);
	/* As soon as a worker has begun, let the reader pass all examples. */
	while (!ask(&board, key, text, sizeof(text), &bytes)) {
		ck_assert(clock_now_ns() < end_ns);
		pause_ms(1);
	}
	j.note.cursor = j.note.begin = j.note.end;
	job_tell(&j);
	worker_stop(&w);
	for (uint64_t f = 0; f < j.fresh; f += j.count) {
		bool done;

		job_range(&j, f, key);
		done = ask(&board, key, text, sizeof(text), &bytes) &&
			text[0] == 'D'; /* the reader deletes the range */
		for (uint64_t i = f; i < j.fresh && i < f + j.count; i++) {
			ck_assert_int_eq(schedule_fresh(&j.simple.schedule, i,
						 &slot, &need_by),
				0);
			ck_assert_int_eq(
				job_sample(&j, &slot, &v) != NULL, done);
		}
	}
	job_close(&j);
}
END_TEST

static char refusal[256];

static void note_refusal(const char *dataset, const char *why)
{
	(void)snprintf(refusal, sizeof(refusal), "%s: %s", dataset, why);
}

START_TEST(test_other_datasets_and_decoders_are_not_prepared)
{
	struct refrain_config c = config_of();
	struct service_conf conf;
	struct worker w;
	struct job j;

	job_open(&j, &c);
	conf = conf_of(&j);
	conf.fingerprint++;
	job_conf(&j, &conf);
	job_tell(&j);
	job_names(&j);
	worker_init(&w);
	w.config.exit_idle_s = 2;
	w.config.refused = note_refusal;
	(void)worker_main(&w);
	ck_assert_int_eq(w.rc, 0);
	ck_assert_str_eq(
		refusal, NAME ": the dataset has other names or labels here");
	ck_assert_uint_eq(w.counts.decodes, 0);
	job_close(&j);
}
END_TEST

START_TEST(test_a_configuration_that_cannot_work_is_refused)
{
	const struct work_dataset none = {NAME, "/nonexistent"};
	const struct work_dataset odd = {"a/b", top};
	_Atomic bool stop = true;
	struct work_config config = {.board = "a b",
		.store = store.path,
		.datasets = &none,
		.ndatasets = 1,
		.stop = &stop};
	struct work_counts counts;
	struct error err = {""};

	ck_assert_int_eq(work_run(&config, &counts, &err), -EINVAL);
	config.board = board.path;
	ck_assert_int_eq(work_run(&config, &counts, &err), -ENOENT);
	config.datasets = &odd;
	ck_assert_int_eq(work_run(&config, &counts, &err), -EINVAL);
	config.ndatasets = 0;
	ck_assert_int_eq(work_run(&config, &counts, &err), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("work");
	TCase *t = case_with(suite, "work", site_make, site_remove);

	if (system("memcached -V >/dev/null 2>&1") != 0) {
		printf("SKIP: needs memcached\n");
		return 77;
	}
	tcase_add_loop_test(t,
		test_samples_of_two_workers_are_those_of_a_lone_loader, 0, 4);
	tcase_add_test(t, test_two_ranks_get_their_own_samples);
	tcase_add_test(t, test_a_damaged_example_is_left_to_the_reader);
	tcase_add_test(
		t, test_a_claimed_range_is_left_alone_until_the_claim_ends);
	tcase_add_test(t, test_a_board_that_restarts_costs_no_decodes);
	tcase_add_test(
		t, test_what_nobody_needs_any_more_is_not_left_in_the_store);
	tcase_add_test(t, test_other_datasets_and_decoders_are_not_prepared);
	tcase_add_test(t, test_a_configuration_that_cannot_work_is_refused);
	return run_suite(suite);
}

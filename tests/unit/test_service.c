/* SPDX-License-Identifier: MIT */
/* Tests of the names, values and states of the preparation service. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/service/service_conf.h"
#include "loader/service/service_names.h"
#include "loader/service/service_state.h"
#include "loader/service/service_value.h"
#include "suite.h"

static const struct hash128 job = {0x0123456789abcdefU, 0xfedcba9876543210U};

/* -- Names ----------------------------------------------------------------- */

START_TEST(test_a_sample_has_one_key_of_one_length)
{
	const struct sample_name small = {0, 0, 1};
	const struct sample_name large = {
		(UINT64_C(1) << 56) - 1, (UINT64_C(1) << 56) - 1, 64};
	char key[SERVICE_KEY_MAX], other[SERVICE_KEY_MAX];
	size_t len = service_sample_key(key, job, &small, 0);

	ck_assert_str_eq(key,
		"rs1:0123456789abcdeffedcba9876543210:00000000000000."
		"00000000000000.00.01");
	ck_assert_uint_eq(len, strlen(key));
	ck_assert_uint_eq(service_sample_key(other, job, &large, 63), len);
	ck_assert_str_ne(key, other);
}
END_TEST

START_TEST(test_a_range_has_at_most_128_samples)
{
	ck_assert_uint_eq(range_examples(1), 32);
	ck_assert_uint_eq(range_examples(4), 32);
	ck_assert_uint_eq(range_examples(5), 16);
	ck_assert_uint_eq(range_examples(64), 2);
}
END_TEST

START_TEST(test_a_range_is_named_by_its_samples_and_their_order)
{
	const struct sample_name a[] = {{1, 2, 3}, {1, 4, 3}};
	const struct sample_name b[] = {{1, 4, 3}, {1, 2, 3}};
	const struct sample_name c[] = {{1, 2, 3}, {1, 4, 2}};
	struct hash128 name = range_name(a, 2);

	ck_assert_uint_eq(name.lo, range_name(a, 2).lo);
	ck_assert_uint_ne(name.lo, range_name(a, 1).lo);
	ck_assert_uint_ne(name.lo, range_name(b, 2).lo);
	ck_assert_uint_ne(name.lo, range_name(c, 2).lo);
}
END_TEST

START_TEST(test_keys_of_states_do_not_collide)
{
	char key[5][SERVICE_KEY_MAX];

	(void)service_range_key(key[0], job, (struct hash128){1, 2});
	(void)service_job_key(key[1], job, "conf");
	(void)service_job_key(key[2], job, "readers");
	(void)service_reader_key(key[3], job, "r1");
	(void)service_worker_key(key[4], "r1");
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < i; k++)
			ck_assert_str_ne(key[i], key[k]);
}
END_TEST

/* -- Values ---------------------------------------------------------------- */

#define PIXELS 300u

struct sealed {
	uint8_t bytes[SAMPLE_HEAD_BYTES + PIXELS];
	struct sample_value v;
	uint64_t seed;
};

static void seal(struct sealed *s)
{
	s->seed = sample_seed("secret", 6);
	s->v = (struct sample_value){.maker = 77,
		.width = 500,
		.height = 375,
		.has_label = true,
		.label = -5,
		.bytes = PIXELS};
	memset(s->bytes + SAMPLE_HEAD_BYTES, 9, PIXELS);
	sample_seal(
		s->bytes, s->seed, "key", &s->v, s->bytes + SAMPLE_HEAD_BYTES);
}

START_TEST(test_a_value_comes_back_as_it_was_sealed)
{
	struct sample_value v;
	struct sealed s;
	const uint8_t *pixels;

	seal(&s);
	pixels = sample_unseal(s.bytes, sizeof(s.bytes), s.seed, "key", &v);
	ck_assert_ptr_eq(pixels, s.bytes + SAMPLE_HEAD_BYTES);
	ck_assert_uint_eq(v.maker, 77);
	ck_assert_uint_eq(v.width, 500);
	ck_assert_uint_eq(v.height, 375);
	ck_assert(v.has_label && v.label == -5);
	ck_assert_uint_eq(v.bytes, PIXELS);
}
END_TEST

START_TEST(test_a_value_with_any_changed_byte_is_refused)
{
	struct sample_value v;
	struct sealed s;

	seal(&s);
	for (size_t i = 0; i < sizeof(s.bytes); i++) {
		s.bytes[i] ^= 1;
		ck_assert_ptr_null(sample_unseal(
			s.bytes, sizeof(s.bytes), s.seed, "key", &v));
		s.bytes[i] ^= 1;
	}
}
END_TEST

START_TEST(test_a_value_of_another_key_secret_or_length_is_refused)
{
	struct sample_value v;
	struct sealed s;

	seal(&s);
	ck_assert_ptr_null(
		sample_unseal(s.bytes, sizeof(s.bytes), s.seed, "kez", &v));
	ck_assert_ptr_null(sample_unseal(
		s.bytes, sizeof(s.bytes), sample_seed("secres", 6), "key", &v));
	for (size_t i = 0; i < sizeof(s.bytes); i++)
		ck_assert_ptr_null(
			sample_unseal(s.bytes, i, s.seed, "key", &v));
}
END_TEST

/* -- States ---------------------------------------------------------------- */

static int parse(const char *text, struct range_state *s)
{
	return range_state_parse(text, strlen(text), s);
}

START_TEST(test_states_of_a_range_come_back)
{
	char text[RANGE_STATE_MAX];
	struct range_state s;
	const char *const texts[] = {"T w1.a-b_c ffffffffffffffff cpu3:11212",
		"D [::1]:11212 ffffffff 120", "D /run/store 0 0", "L gpu1-812"};

	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(parse(texts[i], &s), 0);
		ck_assert_uint_eq(range_state_text(&s, text), strlen(texts[i]));
		ck_assert_str_eq(text, texts[i]);
	}
	ck_assert_int_eq(parse(texts[0], &s), 0);
	ck_assert_int_eq(s.kind, RANGE_CLAIMED);
	ck_assert_str_eq(s.who, "w1.a-b_c");
	ck_assert_uint_eq(s.nonce, UINT64_MAX);
	ck_assert_str_eq(s.store, "cpu3:11212");
}
END_TEST

START_TEST(test_malformed_states_of_a_range_are_refused)
{
	const char *const texts[] = {"", "T", "T w", "T w 1", "T w 1 ",
		"T w 1 host x", " T w 1 host", "T  w 1 host", "T w g host",
		"T w 10000000000000000 host", "T w/x 1 host", "T w 1 ho,st",
		"T w 1 host:0", "D host ffffffff1 1", "D host 1 -1",
		"D host 1 4294967296", "D host 1 1 ", "L", "L a b", "X a",
		"l a", "TT w 1 host", "D host 1 a"};
	struct range_state s;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_int_eq(parse(texts[i], &s), -EBADMSG);
}
END_TEST

static void note_make(struct reader_note *n)
{
	*n = (struct reader_note){.rank = 1,
		.world = 2,
		.batch = 256,
		.lag = 1,
		.window = 4096,
		.echo = {5, 2},
		.state_bytes = SCHEDULE_STATE_BYTES,
		.cursor = 100,
		.begin = 200,
		.end = 456,
		.demand = 5120000,
		.pid = 812,
		.host = "gpu1"};
	for (unsigned i = 0; i < SCHEDULE_STATE_BYTES; i++)
		n->state[i] = (uint8_t)(7 * i);
}

START_TEST(test_a_note_of_a_reader_comes_back)
{
	char text[READER_NOTE_MAX], again[READER_NOTE_MAX];
	struct reader_note n, got;
	size_t len;

	note_make(&n);
	len = reader_note_text(&n, text);
	ck_assert_int_eq(reader_note_parse(text, len, &got), 0);
	ck_assert_uint_eq(got.end, 456);
	ck_assert_str_eq(got.host, "gpu1");
	ck_assert_mem_eq(got.state, n.state, sizeof(n.state));
	ck_assert_uint_eq(reader_note_text(&got, again), len);
	ck_assert_str_eq(again, text);
	for (size_t i = 0; i < len; i++) /* every value that is cut short */
		if (reader_note_parse(text, i, &got) == 0)
			ck_assert_uint_lt(got.state_bytes, n.state_bytes);
}
END_TEST

START_TEST(test_the_longest_note_fits)
{
	char text[READER_NOTE_MAX];
	struct reader_note n;

	note_make(&n);
	n.rank = n.world = n.batch = n.lag = n.echo.p = n.echo.q = UINT32_MAX;
	n.demand = n.pid = UINT32_MAX;
	n.window = n.cursor = n.begin = n.end = UINT64_MAX;
	memset(n.host, 'h', SERVICE_ID_MAX);
	n.host[SERVICE_ID_MAX] = 0;
	ck_assert_uint_lt(reader_note_text(&n, text), READER_NOTE_MAX);
}
END_TEST

static void refuse(void (*spoil)(struct reader_note *n))
{
	char text[READER_NOTE_MAX];
	struct reader_note n, got;

	note_make(&n);
	spoil(&n);
	ck_assert_int_eq(
		reader_note_parse(text, reader_note_text(&n, text), &got),
		-EBADMSG);
}

static void spoil_rank(struct reader_note *n)
{
	n->rank = n->world;
}

static void spoil_batch(struct reader_note *n)
{
	n->batch = 0;
}

static void spoil_echo(struct reader_note *n)
{
	n->echo.q = 0;
}

static void spoil_order(struct reader_note *n)
{
	n->begin = n->end + 1;
}

static void spoil_end(struct reader_note *n)
{
	n->end = SCHEDULE_GLOBAL_MAX + 1;
}

START_TEST(test_notes_that_make_no_sense_are_refused)
{
	refuse(spoil_rank);
	refuse(spoil_batch);
	refuse(spoil_echo);
	refuse(spoil_order);
	refuse(spoil_end);
}
END_TEST

/* -- Lists ----------------------------------------------------------------- */

static void expect_list(const char *list, size_t bytes, const char *want)
{
	ck_assert_uint_eq(bytes, strlen(want));
	ck_assert_mem_eq(list, want, bytes);
}

START_TEST(test_ids_are_added_to_a_list_once_and_removed)
{
	char list[ROSTER_MAX];
	size_t n = 0;

	n = roster_add(list, n, "a");
	n = roster_add(list, n, "bb");
	n = roster_add(list, n, "c");
	expect_list(list, n, "a bb c");
	ck_assert_uint_eq(roster_add(list, n, "bb"), n);
	ck_assert_uint_eq(roster_drop(list, n, "b"), n);
	n = roster_drop(list, n, "bb");
	expect_list(list, n, "a c");
	n = roster_drop(list, n, "c");
	expect_list(list, n, "a");
	n = roster_drop(list, n, "a");
	ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(test_a_list_that_is_full_takes_no_more)
{
	char list[ROSTER_MAX], id[SERVICE_ID_MAX + 1];
	size_t n = 0, at = 0, len;
	unsigned count = 0;

	memset(id, 'x', SERVICE_ID_MAX);
	id[SERVICE_ID_MAX] = 0;
	for (unsigned i = 0; i < ROSTER_NAMES_MAX; i++) {
		(void)snprintf(id, 4, "%03u", i);
		id[3] = 'x';
		n = roster_add(list, n, id);
		ck_assert_uint_gt(n, 0);
	}
	ck_assert_uint_le(n, ROSTER_MAX);
	ck_assert_uint_eq(roster_add(list, n, "one-more"), 0);
	while ((len = roster_next(list, n, &at)) > 0) {
		ck_assert_uint_eq(len, SERVICE_ID_MAX);
		at += len;
		count++;
	}
	ck_assert_uint_eq(count, ROSTER_NAMES_MAX);
}
END_TEST

START_TEST(test_what_is_not_an_id_in_a_list_is_skipped)
{
	static const char list[] = "  /bad a  \n b? c";
	size_t at = 0;

	ck_assert_uint_eq(roster_next(list, strlen(list), &at), 1);
	ck_assert_int_eq(list[at], 'a');
	at++;
	ck_assert_uint_eq(roster_next(list, strlen(list), &at), 1);
	ck_assert_int_eq(list[at], 'c');
	at++;
	ck_assert_uint_eq(roster_next(list, strlen(list), &at), 0);
}
END_TEST

/* -- Configurations -------------------------------------------------------- */

static struct settings settings_of(struct refrain_config *c)
{
	struct settings s;
	struct error err;

	c->dataset = "/data";
	c->batch = c->batch ? c->batch : 8;
	ck_assert_msg(settings_init(&s, c, &err) == 0, "%s", err.msg);
	return s;
}

static const struct service_conf of_dataset = {.dataset = "imagenet",
	.examples = 1281167,
	.fingerprint = 0x1234,
	.print = UINT64_MAX};

static size_t conf_of(struct refrain_config *c, char text[SERVICE_CONF_MAX])
{
	struct settings s = settings_of(c);
	struct error err;
	int len = service_conf_text(&s, &of_dataset, text, &err);

	ck_assert_int_gt(len, 0);
	return (size_t)len;
}

START_TEST(test_a_worker_makes_the_pixels_that_the_job_wants)
{
	char text[SERVICE_CONF_MAX];
	struct refrain_config c;
	struct service_conf conf;
	struct settings s, mine;
	struct error err;
	size_t len;

	refrain_config_init(&c);
	c.seed = UINT64_MAX;
	c.width = 160;
	c.echo = 2.5;
	c.area_min = 0.1F;
	c.jitter[1] = 0.3F;
	c.type = REFRAIN_F16;
	c.layout = REFRAIN_NCHW;
	c.cutout = 32;
	c.flags = REFRAIN_FLAG_IN_ORDER | REFRAIN_FLAG_NO_NORMALISE;
	len = conf_of(&c, text);
	mine = settings_of(&c);
	ck_assert_msg(service_conf_parse(text, len, &conf, &s, &err) == 0, "%s",
		err.msg);
	ck_assert_str_eq(conf.dataset, "imagenet");
	ck_assert_uint_eq(conf.examples, 1281167);
	ck_assert_uint_eq(conf.print, UINT64_MAX);
	ck_assert_uint_eq(s.c.seed, UINT64_MAX);
	ck_assert_uint_eq(s.augment.height, 160);
	ck_assert_int_eq(s.augment.type, REFRAIN_U8);
	ck_assert_int_eq(s.augment.layout, REFRAIN_NHWC);
	ck_assert_uint_eq(s.augment.cutout, 0);
	ck_assert_int_eq(s.augment.scale, mine.augment.scale);
	ck_assert(s.augment.area_min == mine.augment.area_min);
	ck_assert(s.augment.jitter[1] == mine.augment.jitter[1]);
	ck_assert_int_eq(s.augment.flip, mine.augment.flip);
}
END_TEST

/* Is this a member that the trainer applies, or one in the record of a reader,
 * or one whose use is refused, like fields, mix and bucket? */
static bool is_of_the_trainer(const char *name)
{
	static const char *const names[] = {"type", "layout", "mean", "std",
		"cutout", "policy", "no_normalise", "batch", "echo", "window",
		"min_lag", "rank", "world", "echo_max", "record_bytes",
		"label_bytes", "sample_bytes", "fields", "mix", "bucket"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

START_TEST(test_the_name_of_a_job_depends_on_all_that_its_samples_do)
{
	char text[SERVICE_CONF_MAX], find[64];
	struct refrain_config c;
	const struct member *m;

	refrain_config_init(&c);
	(void)conf_of(&c, text);
	for (size_t i = 0; (m = member_at(i)); i++) {
		bool saved =
			m->saved >= SAVED_HASH || m->saved == SAVED_SCHEDULE;

		if (m->type == MEMBER_OTHER || !saved ||
			is_of_the_trainer(m->name))
			continue;
		(void)snprintf(find, sizeof(find), "\n%s ", m->name);
		ck_assert_msg(strstr(text, find), "%s is missing", m->name);
	}
}
END_TEST

START_TEST(test_jobs_that_differ_only_at_the_trainer_have_one_name)
{
	char one[SERVICE_CONF_MAX], two[SERVICE_CONF_MAX];
	struct refrain_config a, b;
	struct hash128 of_a, of_b;

	refrain_config_init(&a);
	b = a;
	a.echo = 2;
	b.echo = 3;
	b.type = REFRAIN_F32;
	b.rank = 1;
	b.world = 2;
	b.batch = 64;
	b.cutout = 9;
	of_a = service_job(one, conf_of(&a, one));
	of_b = service_job(two, conf_of(&b, two));
	ck_assert_uint_eq(of_a.lo, of_b.lo);
	ck_assert_uint_eq(of_a.hi, of_b.hi);
	b.seed = 1;
	of_b = service_job(two, conf_of(&b, two));
	ck_assert_uint_ne(of_a.lo, of_b.lo);
	/* Without echoes, the scale of a decode depends on the crop. */
	b = a;
	b.echo = 1;
	of_b = service_job(two, conf_of(&b, two));
	ck_assert_uint_ne(of_a.lo, of_b.lo);
}
END_TEST

static int decode_nothing(void *ctx, const struct refrain_encoded *in,
	struct refrain_decoded *out)
{
	(void)ctx;
	(void)in;
	(void)out;
	return -EINVAL;
}

START_TEST(test_what_workers_cannot_prepare_is_refused)
{
	char text[SERVICE_CONF_MAX];
	struct refrain_config c;
	struct settings s;
	struct error err;

	refrain_config_init(&c);
	c.decode = decode_nothing;
	c.decoded_max_bytes = 100;
	s = settings_of(&c);
	ck_assert_int_eq(
		service_conf_text(&s, &of_dataset, text, &err), -EOPNOTSUPP);
	refrain_config_init(&c);
	c.source = REFRAIN_SOURCE_RAW;
	c.record_bytes = 10;
	s = settings_of(&c);
	ck_assert_int_eq(
		service_conf_text(&s, &of_dataset, text, &err), -EOPNOTSUPP);
	ck_assert_str_eq(err.msg,
		"service: workers cannot prepare this: raw records need no "
		"preparation");
	refrain_config_init(&c);
	c.fields = "image; mask";
	s = settings_of(&c);
	ck_assert_int_eq(
		service_conf_text(&s, &of_dataset, text, &err), -EOPNOTSUPP);
	ck_assert_ptr_nonnull(strstr(err.msg, "several fields"));
}
END_TEST

/* Parse the text after one replacement in the text. */
static int parse_with(const char *from, const char *to)
{
	char text[SERVICE_CONF_MAX], changed[2 * SERVICE_CONF_MAX];
	struct refrain_config c;
	struct service_conf conf;
	struct settings s;
	struct error err;
	char *at;
	int len;

	refrain_config_init(&c);
	(void)conf_of(&c, text);
	at = strstr(text, from);
	ck_assert_ptr_nonnull(at);
	len = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text),
		text, to, at + strlen(from));
	return service_conf_parse(changed, (size_t)len, &conf, &s, &err);
}

START_TEST(test_configurations_that_are_malformed_or_newer_are_refused)
{
	ck_assert_int_eq(parse_with("seed 0", "seed 0"), 0);
	ck_assert_int_eq(parse_with("service 1", "service 2"), -EBADMSG);
	ck_assert_int_eq(parse_with("imagenet", "../x"), -EBADMSG);
	ck_assert_int_eq(parse_with("examples 1", "examples a"), -EBADMSG);
	ck_assert_int_eq(parse_with("1281167", "0"), -EBADMSG);
	ck_assert_int_eq(parse_with("height 224", "height 99999"), -EBADMSG);
	ck_assert_int_eq(parse_with("height 224\n", ""), -EBADMSG);
	ck_assert_int_eq(parse_with("exact 0\n", "exact 0\nnew 1\n"), -EBADMSG);
	/* The library would write "0.0799999982" for this number. */
	ck_assert_int_eq(parse_with("area_min 0.0799999982", "area_min 0.08"),
		-EOPNOTSUPP);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_a_sample_has_one_key_of_one_length,
		test_a_range_has_at_most_128_samples,
		test_a_range_is_named_by_its_samples_and_their_order,
		test_keys_of_states_do_not_collide,
		test_a_value_comes_back_as_it_was_sealed,
		test_a_value_with_any_changed_byte_is_refused,
		test_a_value_of_another_key_secret_or_length_is_refused,
		test_states_of_a_range_come_back,
		test_malformed_states_of_a_range_are_refused,
		test_a_note_of_a_reader_comes_back,
		test_the_longest_note_fits,
		test_notes_that_make_no_sense_are_refused,
		test_ids_are_added_to_a_list_once_and_removed,
		test_a_list_that_is_full_takes_no_more,
		test_what_is_not_an_id_in_a_list_is_skipped,
		test_a_worker_makes_the_pixels_that_the_job_wants,
		test_the_name_of_a_job_depends_on_all_that_its_samples_do,
		test_jobs_that_differ_only_at_the_trainer_have_one_name,
		test_what_workers_cannot_prepare_is_refused,
		test_configurations_that_are_malformed_or_newer_are_refused,
	};
	Suite *suite = suite_create("service");

	case_add(case_of(suite, "service"), tests,
		sizeof(tests) / sizeof(tests[0]));
	return run_suite(suite);
}

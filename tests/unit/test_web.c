/* SPDX-License-Identifier: MIT */
/* Signatures, encodings, headers, dates, documents: pure functions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/date.h"
#include "sign_vectors.h"
#include "suite.h"
#include "origin/web/web.h"

#define WHEN 1767323045 /* the time 2026-01-02 03:04:05 UTC */

/* -- Signatures ------------------------------------------------------------ */

static void vector_path(const struct sign_vector *v, struct bytes *path)
{
	struct bytes key = {0};
	unsigned c;

	for (int i = 0; i < 6 && v->key[i]; i++)
		for (const char *h = v->key[i]; sscanf(h, "%2x", &c) == 1;
			h += 2)
			bytes_char(&key, (char)c);
	bytes_text(path, "/bucket/");
	bytes_encode(path, bytes_get(&key), key.len, true);
	bytes_release(&key);
}

START_TEST(test_signatures_equal_those_of_botocore)
{
	const struct sign_vector *v = &sign_vectors[_i];
	struct sign_key cache = {.set = false};
	struct bytes path = {0}, out = {0};
	struct sign_request r = {
		.method = "GET",
		.host = "127.0.0.1:8080",
		.query = v->query,
		.payload_hash = SIGN_EMPTY_HASH,
		.access_key = "AKID",
		.secret = "sec/ret+KEY",
		.token = v->token[0] ? v->token : NULL,
		.region = "eu-west-1",
		.service = "s3",
		.now = WHEN,
	};

	vector_path(v, &path);
	r.path = path.at;
	ck_assert_int_eq(sign_headers(&cache, &r, &out), 0);
	ck_assert_ptr_nonnull(strstr(out.at, v->signature));
	sign_key_wipe(&cache);
	bytes_release(&path);
	bytes_release(&out);
}
END_TEST

START_TEST(test_signing_key_follows_secret_region_and_day)
{
	struct sign_key cache = {.set = false};
	struct sign_request r = {.method = "GET",
		.host = "h",
		.path = "/",
		.query = "",
		.payload_hash = SIGN_EMPTY_HASH,
		.access_key = "A",
		.secret = "one",
		.region = "r1",
		.service = "s3",
		.now = WHEN};
	struct bytes a = {0}, b = {0}, again = {0};

	ck_assert_int_eq(sign_headers(&cache, &r, &a), 0);
	r.secret = "two";
	ck_assert_int_eq(sign_headers(&cache, &r, &b), 0);
	ck_assert_str_ne(a.at, b.at);
	r.region = "r2";
	bytes_reset(&b);
	ck_assert_int_eq(sign_headers(&cache, &r, &b), 0);
	r.secret = "one";
	r.region = "r1";
	ck_assert_int_eq(sign_headers(&cache, &r, &again), 0);
	ck_assert_str_eq(a.at, again.at);
	sign_key_wipe(&cache);
	bytes_release(&a);
	bytes_release(&b);
	bytes_release(&again);
}
END_TEST

/* -- Encodings ------------------------------------------------------------- */

START_TEST(test_percent_encoding_returns_what_was_encoded)
{
	char all[256];
	struct bytes b = {0};

	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = '\0';
	bytes_encode(&b, all, 255, false);
	ck_assert_int_eq(bytes_decode(b.at, true), 255);
	ck_assert_mem_eq(b.at, all, 256);
	bytes_release(&b);
}
END_TEST

START_TEST(test_malformed_percent_encoding_is_refused)
{
	static const char *const bad[] = {"%", "a%2", "%zz", "%00", "%g1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[8];

		strcpy(text, bad[i]);
		ck_assert_int_eq(bytes_decode(text, false), -1);
	}
}
END_TEST

/* -- Headers and dates ----------------------------------------------------- */

static struct head parse(const char *const *lines)
{
	struct head h;

	memset(&h, 0, sizeof(h));
	for (; *lines; lines++)
		head_line(&h, *lines, strlen(*lines));
	return h;
}

START_TEST(test_headers_are_understood)
{
	static const char *const lines[] = {"HTTP/1.1 206 Partial Content\r\n",
		"content-length: 100\r\n",
		"Content-Range: bytes 5-104/1000\r\n", "ETag: \"abc\"\r\n",
		"Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n",
		"Retry-After: 100000\r\n", "x-amz-bucket-region: eu-west-9\r\n",
		"Content-Type: text/html; charset=utf-8\r\n", NULL};
	struct head h = parse(lines);

	ck_assert_uint_eq(h.code, 206);
	ck_assert(!h.bad && h.has_length && h.has_range && h.has_total);
	ck_assert_uint_eq(h.length, 100);
	ck_assert_uint_eq(h.first, 5);
	ck_assert_uint_eq(h.last, 104);
	ck_assert_uint_eq(h.total, 1000);
	ck_assert_int_eq(h.modified_ns, INT64_C(1000000000) * 1000000000);
	ck_assert_uint_eq(h.retry_after_ns, 60 * NS_PER_S);
	ck_assert_str_eq(h.region, "eu-west-9");
	ck_assert_str_eq(h.type, "text/html");
	ck_assert_uint_eq(h.tag, etag_tag("W/\"abc\"", 7));
	ck_assert(!h.weak && !h.encoded);
}
END_TEST

START_TEST(test_malformed_headers_are_marked)
{
	static const char *const bad[] = {"Content-Length: -1",
		"Content-Length: 12x", "Content-Length: 99999999999999999999",
		"Content-Range: bytes 5-4/10", "Content-Range: bytes 5-10/10",
		"Content-Range: bytes 5", "Content-Range: items 1-2/3",
		"HTTP/1.1 banana"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *const lines[] = {bad[i], NULL};

		ck_assert_msg(parse(lines).bad, "%s", bad[i]);
	}
}
END_TEST

START_TEST(test_dates_of_all_forms)
{
	int64_t want = INT64_C(784111777) * 1000000000;

	ck_assert_int_eq(
		date_parse_http("Sun, 06 Nov 1994 08:49:37 GMT"), want);
	ck_assert_int_eq(
		date_parse_http("Sunday, 06-Nov-94 08:49:37 GMT"), want);
	ck_assert_int_eq(date_parse_http("Sun Nov  6 08:49:37 1994"), want);
	ck_assert_int_eq(date_parse_iso("1994-11-06T08:49:37.000Z"), want);
	ck_assert_int_eq(date_parse_iso("yesterday"), 0);
	ck_assert_int_eq(date_parse_http("Sun, 06 Foo 1994 08:49:37 GMT"), 0);
	ck_assert_int_eq(date_parse_http(""), 0);
}
END_TEST

/* -- Documents ------------------------------------------------------------- */

START_TEST(test_xml_finds_the_first_and_refuses_entities)
{
	static const char doc[] = "<E><Code>NoSuchKey</Code><Code>b</Code></E>";
	static const char bomb[] = "<!DOCTYPE x [<!ENTITY a \"aaaa\">]>"
				   "<E><Code>&a;</Code></E>";
	char out[32];

	xml_find(doc, strlen(doc), "Code", out, sizeof(out));
	ck_assert_str_eq(out, "NoSuchKey");
	xml_find(doc, 20, "Code", out, sizeof(out));
	ck_assert_str_eq(out, "");
	xml_find(bomb, strlen(bomb), "Code", out, sizeof(out));
	ck_assert_str_eq(out, "");
}
END_TEST

/* A token without end is refused at 1 MiB, in pieces of any size. */
START_TEST(test_xml_refuses_a_token_without_an_end)
{
	static const char *const begins[] = {"<E a='", "<E><!--", "<E><?p "};
	static const struct xml_events events;
	static char piece[16384];
	size_t fed;
	int rc;

	memset(piece, 'a', sizeof(piece));
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct xml *x = xml_new(&events);

		ck_assert_ptr_nonnull(x);
		rc = xml_feed(x, begins[i], strlen(begins[i]));
		for (fed = 0; rc == 0 && fed < 60u << 20; fed += sizeof(piece))
			rc = xml_feed(x, piece, sizeof(piece));
		ck_assert_int_eq(rc, -EBADMSG);
		ck_assert_uint_le(fed, (1u << 20) + sizeof(piece));
		xml_free(x);
	}
}
END_TEST

/* Many small tokens are not one large token. */
START_TEST(test_xml_has_no_limit_of_a_document)
{
	static const struct xml_events events;
	struct xml *x = xml_new(&events);

	ck_assert_ptr_nonnull(x);
	ck_assert_int_eq(xml_feed(x, "<E>", 3), 0);
	for (unsigned i = 0; i < 300000; i++)
		ck_assert_int_eq(xml_feed(x, "<a b='c'>x</a> ", 15), 0);
	ck_assert_int_eq(xml_feed(x, "</E>", 4), 0);
	ck_assert_int_eq(xml_finish(x), 0);
	xml_free(x);
}
END_TEST

/* -- URLs ------------------------------------------------------------------ */

START_TEST(test_urls_are_taken_apart)
{
	struct url url;

	ck_assert_int_eq(
		url_parse("https://h.example:443/a b/%20c//", &url), 0);
	ck_assert_str_eq(url.scheme, "https");
	ck_assert_str_eq(url.host, "h.example");
	ck_assert_str_eq(url.path, "/a%20b/%20c");
	free(url.path);
	ck_assert_int_eq(url_parse("http://u:p@host/", &url), -EINVAL);
	ck_assert_int_eq(url_parse("ftp://host/", &url), -EINVAL);
}
END_TEST

START_TEST(test_redirects_lead_only_where_they_may)
{
	static const struct {
		const char *from, *location, *to;
	} cases[] = {
		{"http://a/x/y", "/z", "http://a/z"},
		{"http://a/x/y", "https://b/z", "https://b/z"},
		{"https://a/x", "http://b/z", NULL},
		{"http://a/x", "http://user:pw@b/z", NULL},
		{"http://a/x", "file:///etc/passwd", NULL},
		{"http://a/x", "ftp://b/", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes out = {0};
		int rc = url_resolve(cases[i].from, cases[i].location, &out);

		if (cases[i].to)
			ck_assert_str_eq(bytes_get(&out), cases[i].to);
		else
			ck_assert_int_eq(rc, -EIO);
		bytes_release(&out);
	}
}
END_TEST

/* -- A busy server --------------------------------------------------------- */

/*
 * Simulate a second and a half of round trips of 20 ms; each has as many
 * requests as the depth allows at its beginning. Counts the requests of the
 * last second. The server refuses requests above `rate` a second, or one in
 * `each`.
 */
static void busy_server(struct throttle *t, unsigned rate, unsigned each,
	unsigned *good, unsigned *refused)
{
	const uint64_t round_ns = 20 * NS_PER_MS;
	uint64_t now_ns = NS_PER_S;
	unsigned n = 0;

	*good = *refused = 0;
	for (int round = 0; round < 75; round++) {
		unsigned depth = t->depth, room = rate / 50;

		if (round == 25)
			*good = *refused = 0;
		for (unsigned i = 0; i < depth; i++) {
			bool no = i >= room || (each && ++n % each == 0);

			now_ns += round_ns / depth;
			*(no ? refused : good) += 1;
			if (no)
				(void)throttle_refused(t, now_ns, round_ns);
			else
				throttle_answered(t);
		}
	}
}

START_TEST(test_a_server_that_refuses_a_tenth_is_kept_busy)
{
	struct throttle t;
	unsigned good, refused;

	throttle_init(&t, 256);
	busy_server(&t, 100000, 10, &good, &refused);
	/* 200 MB/s of 110 KB files are 1,820 a second. */
	ck_assert_uint_gt(good, 2500);
}
END_TEST

START_TEST(test_a_server_with_a_limit_is_not_asked_for_much_more)
{
	struct throttle t;
	unsigned good, refused;

	throttle_init(&t, 256);
	busy_server(&t, 1000, 0, &good, &refused);
	ck_assert_uint_gt(good, 900);
	ck_assert_uint_lt(refused, good / 2);
}
END_TEST

START_TEST(test_the_depth_halves_at_most_once_a_round_trip)
{
	struct throttle t;

	throttle_init(&t, 256);
	ck_assert(throttle_refused(&t, NS_PER_S, 20 * NS_PER_MS));
	ck_assert_uint_eq(t.depth, 128);
	for (int i = 1; i < 20; i++)
		ck_assert(!throttle_refused(&t,
			NS_PER_S + (uint64_t)i * NS_PER_MS, 20 * NS_PER_MS));
	ck_assert_uint_eq(t.depth, 128);
	for (int i = 1; i < 20; i++)
		(void)throttle_refused(&t,
			NS_PER_S + (uint64_t)i * 20 * NS_PER_MS,
			20 * NS_PER_MS);
	ck_assert_uint_eq(t.depth, 8);
	/* The depth comes back in equal steps. */
	for (int i = 0; i < 8; i++)
		throttle_answered(&t);
	ck_assert_uint_eq(t.depth, 16);
	for (int i = 0; i < 62 * 256; i++)
		throttle_answered(&t);
	ck_assert_uint_eq(t.depth, 256);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_signing_key_follows_secret_region_and_day,
		test_percent_encoding_returns_what_was_encoded,
		test_malformed_percent_encoding_is_refused,
		test_headers_are_understood, test_malformed_headers_are_marked,
		test_dates_of_all_forms,
		test_xml_finds_the_first_and_refuses_entities,
		test_xml_refuses_a_token_without_an_end,
		test_xml_has_no_limit_of_a_document, test_urls_are_taken_apart,
		test_redirects_lead_only_where_they_may,
		test_a_server_that_refuses_a_tenth_is_kept_busy,
		test_a_server_with_a_limit_is_not_asked_for_much_more,
		test_the_depth_halves_at_most_once_a_round_trip};
	Suite *s = suite_create("web");
	TCase *t = case_of(s, "pure");

	case_add(t, tests, sizeof(tests) / sizeof(tests[0]));
	tcase_add_loop_test(t, test_signatures_equal_those_of_botocore, 0,
		(int)(sizeof(sign_vectors) / sizeof(sign_vectors[0])));
	return run_suite(s);
}

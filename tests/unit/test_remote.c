/* SPDX-License-Identifier: MIT */
/* Pages, keys, splits and indexes of remote origins: pure functions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin/object/s3_list_impl.h"
#include "origin/object/http_names_impl.h"
#include "origin/object/s3_page_impl.h"
#include "suite.h"

/* -- Pages ----------------------------------------------------------------- */

#define LIST(text) "<ListBucketResult>" text "</ListBucketResult>"

static int parse_page(struct s3_page *p, const char *doc)
{
	int rc = s3_page_begin(p);

	/* Feed the document byte by byte, so that no call has a complete
	 * element. */
	for (size_t i = 0; rc == 0 && doc[i]; i++)
		rc = s3_page_feed(p, doc + i, 1);
	return rc == 0 ? s3_page_end(p) : rc;
}

START_TEST(test_page_has_keys_as_they_were_put)
{
	static const char doc[] = LIST(
		"<EncodingType>url</EncodingType><IsTruncated>true"
		"</IsTruncated><NextContinuationToken>t+/=</NextContinuation"
		"Token><Contents><Key>a%2Bb+%E6%BC%A2</Key><Size>7</Size>"
		"<ETag>&quot;e&quot;</ETag><LastModified>2001-09-09T01:46:40"
		".000Z</LastModified></Contents><CommonPrefixes><Prefix>d/"
		"</Prefix></CommonPrefixes>");
	struct s3_page p = {.n = 0};

	ck_assert_int_eq(parse_page(&p, doc), 0);
	ck_assert_uint_eq(p.n, 2);
	ck_assert_str_eq(s3_page_key(&p, &p.objects[0]), "a+b \346\274\242");
	ck_assert_uint_eq(p.objects[0].size_bytes, 7);
	ck_assert_uint_eq(p.objects[0].tag, etag_tag("\"e\"", 3));
	ck_assert_int_eq(
		p.objects[0].mtime_ns, INT64_C(1000000000) * 1000000000);
	ck_assert(p.objects[1].is_prefix && p.truncated);
	ck_assert_str_eq(p.token, "t+/=");
	s3_page_release(&p);
}
END_TEST

START_TEST(test_page_is_complete_or_nothing)
{
	static const char *const bad[] = {"", "<ListBucketResult>",
		"<Error><Code>InternalError</Code></Error>",
		"<html><body>no</body></html>",
		"<!DOCTYPE a [<!ENTITY b 'c'>]>" LIST(""),
		LIST("<a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p>"
		     "</p></o></n></m></l></k></j></i></h></g></f></e></d></c>"
		     "</b></a>"),
		LIST("") LIST("")};
	struct s3_page p = {.n = 0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(parse_page(&p, bad[i]), -EBADMSG);
	ck_assert_int_eq(parse_page(&p, LIST("")), 0);
	ck_assert_uint_eq(p.n, 0);
	s3_page_release(&p);
}
END_TEST

/* Returns the number of bytes that a page accepts before it refuses more; at
 * most 64 MiB are fed. */
static size_t fed_until_refused(const char *begin, const char *more)
{
	struct s3_page p = {.n = 0};
	size_t fed = 0;

	ck_assert_int_eq(s3_page_begin(&p), 0);
	ck_assert_int_eq(s3_page_feed(&p, begin, strlen(begin)), 0);
	while (fed < (size_t)64 << 20 &&
		s3_page_feed(&p, more, strlen(more)) == 0)
		fed += strlen(more);
	s3_page_release(&p);
	return fed;
}

START_TEST(test_page_without_an_end_is_refused)
{
	static const char key[] = "<Contents><Key>a</Key></Contents>";
	char blanks[4097];

	memset(blanks, ' ', 4096);
	blanks[4096] = '\0';
	ck_assert_uint_eq(fed_until_refused("<ListBucketResult>", key),
		S3_PAGE_MAX * strlen(key));
	ck_assert_uint_lt(fed_until_refused("", blanks), (size_t)65 << 20);
	ck_assert_uint_lt(
		fed_until_refused("<ListBucketResult>", "<Other></Other>"),
		(size_t)65 << 20);
}
END_TEST

START_TEST(test_sizes_and_keys_that_are_none_are_marked)
{
	static const char *const bad[] = {
		"<Key>a</Key><Size>-1</Size>",
		"<Key>a</Key><Size>1x</Size>",
		"<Key>a</Key><Size>99999999999999999999</Size>",
		"<Key>a</Key><Size></Size>",
		"<Key>a%zz</Key><Size>1</Size>",
		"<Key>a%00b</Key><Size>1</Size>",
		"<Size>1</Size>",
		"<Key>a</Key>",
		"<Size>1x</Size><Key>a</Key>",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct s3_page p = {.n = 0};
		char doc[400];

		(void)snprintf(doc, sizeof(doc),
			LIST("<EncodingType>url</EncodingType><Contents>%s"
			     "</Contents>"),
			bad[i]);
		ck_assert_int_eq(parse_page(&p, doc), 0);
		ck_assert_uint_eq(p.n, 1);
		ck_assert_msg(p.objects[0].bad, "%s", bad[i]);
		s3_page_release(&p);
	}
}
END_TEST

START_TEST(test_keys_that_cannot_be_paths_are_refused)
{
	static const struct {
		const char *key;
		int rc;
	} cases[] = {{"a/b", 0}, {"a", 0}, {"...", 0}, {"a/", 1},
		{"a//b", -EINVAL}, {"/a", -EINVAL}, {"a/..", -EINVAL},
		{"./a", -EINVAL}, {"//", -EINVAL}, {"/", -EINVAL}};
	char key[600], part[260];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(key, cases[i].key);
		ck_assert_msg(key_to_path(key, strlen(key)) == cases[i].rc,
			"%s", cases[i].key);
	}
	memset(part, 'x', sizeof(part));
	part[255] = '\0';
	(void)snprintf(key, sizeof(key), "%s/%s", part, part);
	ck_assert_int_eq(key_to_path(key, strlen(key)), 0);
	strcat(key, "x");
	ck_assert_int_eq(key_to_path(key, strlen(key)), -EINVAL);
	memcpy(key, "a\0b", 4);
	ck_assert_int_eq(key_to_path(key, 3), -EINVAL);
}
END_TEST

/* -- Splits ---------------------------------------------------------------- */

START_TEST(test_points_lie_between_and_ascend)
{
	static const struct {
		const char *a, *b;
	} ranges[] = {{"f0000999", NULL}, {"f0000999", "g"}, {"f0000999", "f1"},
		{"d1/f9", "d1/g"}, {"abc", "abd"}, {"", "a"}, {"a", "a/"},
		{"zzz", NULL}};
	char points[32][SPLIT_POINT_MAX];
	struct split_seen seen = {.bytes = {{0}}};
	unsigned any = 0;

	split_note(&seen, "f0000000");
	split_note(&seen, "d1/f9");
	split_note(&seen, "abc");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const char *before = ranges[i].a, *b = ranges[i].b;
		unsigned n = split_points(&seen, before, b, 32, points);

		any += n;
		for (unsigned k = 0; k < n; before = points[k++])
			ck_assert_msg(strcmp(points[k], before) > 0 &&
					(!b || strcmp(points[k], b) < 0),
				"'%s' between '%s' and '%s'", points[k], before,
				b ? b : "");
	}
	ck_assert_uint_gt(any, 10);
}
END_TEST

START_TEST(test_share_left_follows_numbers)
{
	struct split_seen seen = {.bytes = {{0}}};
	double share;

	split_note(&seen, "f0000000.bin");
	split_note(&seen, "f0000999.bin");
	share = split_share(&seen, "f1", "f1000999.bin", "f2");
	ck_assert(share > 900 && share < 1100);
	share = split_share(&seen, "f1", "f1999000.bin", "f2");
	ck_assert(share > 0 && share < 0.01);
	ck_assert(split_share(&seen, "f2", "f2", "f3") == 0);
}
END_TEST

/* -- Indexes --------------------------------------------------------------- */

static int parse_index(struct listing_names *x, char kind, const char *doc)
{
	memset(x, 0, sizeof(*x));
	if (kind == 'd')
		return listing_from_dav(x, "/dir", doc, strlen(doc));
	if (kind == 'j')
		return listing_from_json(x, doc, strlen(doc));
	return listing_from_html(x, "/dir", doc, strlen(doc));
}

START_TEST(test_indexes_give_names_of_the_directory_alone)
{
	static const struct {
		char kind;
		const char *doc;
	} docs[] = {
		{'j',
			"[{\"name\":\"a b\",\"type\":\"file\",\"size\":5,"
			"\"mtime\":\"Sun, 09 Sep 2001 01:46:40 GMT\"},"
			"{\"name\":\"d\",\"type\":\"directory\"},"
			"{\"name\":\"..\",\"type\":\"directory\"},"
			"{\"name\":\"x/y\",\"type\":\"file\",\"size\":1}]"},
		{'j',
			"[{\"name\":\"a b\",\"size\":5,\"is_dir\":false},"
			"{\"name\":\"d/\",\"size\":4096,\"is_dir\":true},"
			"{\"name\":\"e//\",\"is_dir\":true},"
			"{\"name\":\"/\",\"is_dir\":true}]"},
		{'h',
			"<a href=\"../\">up</a><a href='a%20b'>a b</a>"
			"<a href=\"?C=N\">N</a><a href=\"/dir/d/\">d</a>"
			"<a href=\"/other/z\">z</a><a href=\"a%20b\">a b</a>"
			"<a href=\"%2e%2e\">x</a><a href=\"x%2fy\">x</a>"},
		{'d',
			"<D:multistatus xmlns:D='DAV:'><D:response><D:href>"
			"/dir/</D:href><D:propstat><D:prop><D:resourcetype>"
			"<D:collection/></D:resourcetype></D:prop>"
			"</D:propstat></D:response><D:response><D:href>"
			"/dir/a%20b</D:href><D:propstat><D:prop>"
			"<D:getcontentlength>5</D:getcontentlength></D:prop>"
			"</D:propstat></D:response><D:response><D:href>"
			"http://h/dir/d/</D:href><D:propstat><D:prop>"
			"<D:resourcetype><D:collection/></D:resourcetype>"
			"</D:prop></D:propstat></D:response><D:response>"
			"<D:href>/else/z</D:href></D:response>"
			"</D:multistatus>"},
	};

	for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
		struct listing_names x;

		ck_assert_int_eq(parse_index(&x, docs[i].kind, docs[i].doc), 0);
		ck_assert_msg(x.n == 2, "%c: %zu", docs[i].kind, x.n);
		ck_assert_str_eq(x.at[0].name, "a b");
		ck_assert_str_eq(x.at[1].name, "d");
		ck_assert(!x.at[0].is_dir && x.at[1].is_dir);
		if (docs[i].kind != 'h')
			ck_assert_uint_eq(x.at[0].size_bytes, 5);
		listing_release(&x);
	}
}
END_TEST

START_TEST(test_links_may_encode_more_or_less)
{
	static const struct {
		/* name: NULL if the link leads out of the directory */
		const char *path, *link, *name;
	} cases[] = {
		{"/~u/a%2Bb%20%281%29", "/~u/a+b%20(1)/x", "x"},
		{"/~u/a%2Bb%20%281%29", "/%7eu/a%2bb%20(1)/x%2By", "x+y"},
		{"/%7Eu", "http://h/~u/x", "x"},
		{"", "/x", "x"},
		{"/%C3%A4", "/\303\244/x", "x"},
		{"/100%25", "/100%25/x", "x"},
		{"/a%2Fb", "/a/b/x", NULL},
		{"/a/b", "/a%2Fb/x", NULL},
		{"/ab", "/a", NULL},
		{"/a", "/ab/x", NULL},
		{"/a%", "/a%/x", "x"},
		{"/a", "/a%", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct listing_names x = {.n = 0};
		char doc[200];

		(void)snprintf(
			doc, sizeof(doc), "<a href=\"%s\">", cases[i].link);
		ck_assert_int_eq(
			listing_from_html(&x, cases[i].path, doc, strlen(doc)),
			0);
		ck_assert_msg(
			x.n == (cases[i].name != NULL), "%s", cases[i].link);
		if (x.n > 0)
			ck_assert_str_eq(x.at[0].name, cases[i].name);
		listing_release(&x);
	}
}
END_TEST

START_TEST(test_malformed_indexes_are_refused)
{
	static const char *const docs[] = {
		"j[", "j{\"a\":}", "d<a>", "d<!DOCTYPE a><a/>"};

	for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
		struct listing_names x;

		ck_assert_int_eq(
			parse_index(&x, docs[i][0], docs[i] + 1), -EBADMSG);
		listing_release(&x);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_page_has_keys_as_they_were_put,
		test_page_is_complete_or_nothing,
		test_page_without_an_end_is_refused,
		test_sizes_and_keys_that_are_none_are_marked,
		test_keys_that_cannot_be_paths_are_refused,
		test_points_lie_between_and_ascend,
		test_share_left_follows_numbers,
		test_indexes_give_names_of_the_directory_alone,
		test_links_may_encode_more_or_less,
		test_malformed_indexes_are_refused};
	Suite *s = suite_create("remote");
	TCase *t = case_of(s, "pure");

	case_add(t, tests, sizeof(tests) / sizeof(tests[0]));
	return run_suite(s);
}

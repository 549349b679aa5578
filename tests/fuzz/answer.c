/* SPDX-License-Identifier: MIT */
/* Fuzz targets: answers of remote servers, which are headers, pages of a
 * listing, and indexes in three formats. The first byte of the input selects
 * the kind of answer. No name in a result may lead out of its directory. */
#include <string.h>

#include "fuzz.h"
#include "origin/object/http_names_impl.h"
#include "origin/object/s3_page_impl.h"

static void must_be_name(const char *name, size_t len)
{
	FUZZ_MUST(len > 0 && len <= 255 && !memchr(name, '/', len));
	FUZZ_MUST(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

/* -- Pages ----------------------------------------------------------------- */

static void check_key(char *key, size_t len)
{
	char *save = NULL;

	if (key_to_path(key, len) < 0)
		return;
	for (char *part = strtok_r(key, "/", &save); part;
		part = strtok_r(NULL, "/", &save))
		must_be_name(part, strlen(part));
}

static void page_one(const void *data, size_t size)
{
	struct s3_page p = {.n = 0};
	size_t half = size / 2;

	if (s3_page_begin(&p) == 0 && s3_page_feed(&p, data, half) == 0 &&
		s3_page_feed(&p, (const char *)data + half, size - half) == 0 &&
		s3_page_end(&p) == 0)
		for (size_t i = 0; i < p.n; i++) {
			const struct s3_object *o = &p.objects[i];

			if (!o->bad && o->len > 0)
				check_key(p.text.at + o->key, o->len);
		}
	s3_page_release(&p);
}

/* -- Headers --------------------------------------------------------------- */

static void head_one(const char *text)
{
	struct head h = {.code = 0};

	while (*text) {
		size_t len = strcspn(text, "\n");

		head_line(&h, text, len);
		text += len + (text[len] == '\n');
	}
	FUZZ_MUST(!h.has_range || h.bad || h.first <= h.last);
	FUZZ_MUST(strlen(h.etag) < HEAD_ETAG_MAX);
	FUZZ_MUST(strlen(h.location) < sizeof(h.location));
}

static void redirect_one(const char *text)
{
	struct bytes out = {0};

	if (url_resolve("https://host/a/b", text, &out) == 0)
		FUZZ_MUST(strncmp(bytes_get(&out), "https://", 8) == 0);
	bytes_release(&out);
}

/* -- Documents ------------------------------------------------------------- */

static void index_one(char kind, const char *text, size_t len)
{
	struct listing_names x = {.n = 0};

	if (kind == 'd')
		(void)listing_from_dav(&x, "/dir", text, len);
	else if (kind == 'j')
		(void)listing_from_json(&x, text, len);
	else
		(void)listing_from_html(&x, "/dir", text, len);
	for (size_t i = 0; i < x.n; i++)
		must_be_name(x.at[i].name, strlen(x.at[i].name));
	listing_release(&x);
}

static void answer_one(const uint8_t *data, size_t size)
{
	char kind = size > 0 ? (char)data[0] : 'p';
	char *text = fuzz_text(data + (size > 0), size - (size > 0));

	if (kind == 'H')
		head_one(text);
	else if (kind == 'r')
		redirect_one(text);
	else if (kind == 'd' || kind == 'j' || kind == 'h')
		index_one(kind, text, strlen(text));
	else if (size > 0)
		page_one(data + 1, size - 1);
	free(text);
}

static size_t answer_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"p<ListBucketResult><EncodingType>url</EncodingType><Contents>"
		"<Key>a%2Fb/../c+d</Key><Size>7</Size><ETag>&quot;e&quot;"
		"</ETag><LastModified>2001-09-09T01:46:40.000Z</LastModified>"
		"</Contents><CommonPrefixes><Prefix>d/</Prefix>"
		"</CommonPrefixes><IsTruncated>true</IsTruncated>"
		"<NextContinuationToken>t</NextContinuationToken>"
		"</ListBucketResult>",
		"p<Error><Code>SlowDown</Code></Error>",
		"HHTTP/1.1 206 X\nContent-Range: bytes 0-9/10\nETag: W/\"a\"\n"
		"Content-Length: 10\nLast-Modified: Sun, 09 Sep 2001 01:46:40 "
		"GMT\nRetry-After: 7\nLocation: https://b/c\n"
		"Content-Encoding: gzip\nx-amz-bucket-region: eu-1\n",
		"r//other/../x?y#z", "rhttps://b:1/c", "r../../d",
		"j[{\"name\":\"a\",\"type\":\"file\",\"size\":5,\"mtime\":"
		"\"Sun, 09 Sep 2001 01:46:40 GMT\"},{\"name\":\"..\","
		"\"type\":\"directory\"}]",
		"h<a href=\"a%20b\">x</a><a href='/dir/d/'>y</a>"
		"<a href=\"%2e%2e/\">z</a>",
		"d<a:m xmlns:a='DAV:'><a:response><a:href>/dir/a</a:href>"
		"<a:getcontentlength>5</a:getcontentlength></a:response></a:m>",
		NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_answer = {"answer", answer_one, answer_seed};

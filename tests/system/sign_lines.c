/* SPDX-License-Identifier: MIT */
/* Signs the test cases that sign_vectors.py prints. A line has a key in
 * hexadecimal, a token, a query and the right signature, with tabs between.
 * Prints the lines whose signature differs; then the exit status is 1. It is 2
 * if the input has no line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin/web/web.h"

#define WHEN 1767323045 /* 2026-01-02 03:04:05 UTC */

static void put_path(struct bytes *path, const char *hex)
{
	struct bytes key = {0};
	unsigned c;

	for (; sscanf(hex, "%2x", &c) == 1; hex += 2)
		bytes_char(&key, (char)c);
	bytes_text(path, "/bucket/");
	bytes_encode(path, bytes_get(&key), key.len, true);
	bytes_release(&key);
}

static bool is_right(struct sign_key *cache, char *field[4])
{
	struct bytes path = {0}, out = {0};
	struct sign_request r = {
		.method = "GET",
		.host = "127.0.0.1:8080",
		.query = field[2],
		.payload_hash = SIGN_EMPTY_HASH,
		.access_key = "AKID",
		.secret = "sec/ret+KEY",
		.token = field[1][0] ? field[1] : NULL,
		.region = "eu-west-1",
		.service = "s3",
		.now = WHEN,
	};
	char want[100];
	bool right;

	put_path(&path, field[0]);
	r.path = bytes_get(&path);
	(void)snprintf(want, sizeof(want), "Signature=%s\n", field[3]);
	right = sign_headers(cache, &r, &out) == 0 &&
		strstr(bytes_get(&out), want);
	bytes_release(&path);
	bytes_release(&out);
	return right;
}

int main(void)
{
	static char line[8192];
	struct sign_key cache = {.set = false};
	unsigned lines = 0, wrong = 0;

	while (fgets(line, sizeof(line), stdin)) {
		char *field[4], *at = line;

		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < 4; i++)
			field[i] = strsep(&at, "\t");
		if (!field[3])
			return 2;
		lines++;
		if (!is_right(&cache, field)) {
			wrong++;
			printf("differs: %s\n", field[0]);
		}
	}
	sign_key_wipe(&cache);
	printf("%u signatures, %u differ\n", lines, wrong);
	return lines == 0 ? 2 : wrong > 0;
}

/* SPDX-License-Identifier: MIT */
/* Parses the headers of an answer. The bytes come from the network and are not
 * trusted: members for malformed headers stay empty. */
#ifndef WEB_HTTP_HEAD_H
#define WEB_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_ETAG_MAX 256
/* A signed URL with a session token has about 3,000 bytes. */
#define HEAD_LOCATION_MAX 4096

struct head {
	unsigned code;
	bool has_length, has_range, has_total, bad;
	bool encoded; /* there is a Content-Encoding other than identity */
	uint64_t length;
	/* from Content-Range: bytes first-last/total */
	uint64_t first, last, total;
	/* the ETag, as sent; "" if there is none, or if it is too long */
	char etag[HEAD_ETAG_MAX];
	bool weak;		 /* the ETag is weak */
	uint64_t tag;		 /* etag_tag() of the ETag, or 0 */
	int64_t modified_ns;	 /* from Last-Modified; 0: none */
	int64_t date_ns;	 /* from Date; 0: none */
	uint64_t retry_after_ns; /* from Retry-After; at most a minute */
	char region[64];	 /* from x-amz-bucket-region */
	char type[64];		 /* from Content-Type, without parameters */
	/* from Location; "" if there is none, or if it is too long */
	char location[HEAD_LOCATION_MAX];
};

/* Parse a line. A status line ("HTTP/1.1 206 ...") begins a new answer and
 * clears `h`. */
void head_line(struct head *h, const char *line, size_t len);

/* Returns the 64-bit tag that stands for an ETag in a version; never 0 for a
 * server's ETag. Quotes and the mark of a weak ETag do not matter. */
uint64_t etag_tag(const char *etag, size_t len);

#endif

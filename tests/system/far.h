/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for what is far away: an S3 store with faults, speeds and
 * millions of keys, and the services that hand out credentials. One thread,
 * loopback only. far.c has the loop, far_answer.c the answers, far_keys.c the
 * objects, far_sign.c the verification of signatures, which shares no code
 * with what it verifies.
 */
#ifndef TESTS_FAR_H
#define TESTS_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changed at any time by GET /-/set?name=value&... */
struct far_settings {
	double delay_ms, list_ms; /* to the first byte */
	double rate;		  /* bytes a second, all bodies; 0: no limit */
	double busy, never, cut, bad_range, no_range, error_doc, bad_etag;
	double endless, loop;	  /* shares, all of them: 0 to 1 */
	double expire_s;	  /* how long credentials live */
	double verify;		  /* 1: check signatures */
	double files, size, dirs; /* of the bucket "many" */
	double retry_after, skew_s, no_list, truncate_xml, down;
	double move; /* another region is right: 1: the document names it; 2: a
		      * header does */
	double no_size;	  /* 1: listings have no sizes */
	double payer;	  /* 1: requests must say that they pay */
	double away;	  /* the port that objects are redirected to */
	double no_length; /* a share: only the end of the connection ends an
			   * object */
	double same;	  /* 1: all objects that are put have one version */
	double web;  /* 1: a directory is redirected to, a missing one 404 */
	double code; /* the HTTP status of all answers about objects */
	double archived; /* 1: objects have been moved to an archive */
	double no_after; /* 1: listings do not know start-after */
	double blank;	 /* 1: every other page of a listing has no keys; 2: all
			  * have none, and no end */
	double flood;	 /* the HTTP status of all answers; they have no end */
	double nagle;	 /* 1: new connections send headers and body separately,
			  * as they would by default */
	double only;	 /* N: of lasting keys, none but AKN has not expired */
};
extern struct far_settings far_set;

struct far_counts {
	uint64_t requests, /* but those of tests */
		gets, heads, lists, puts, busy, never, cut, refused, services,
		hosts, secrets, bytes, connections,
		object_bytes, /* of bytes, those of objects */
		most,	    /* requests at a time, but those of tests */
		most_bytes, /* that these ask for */
		authorized; /* requests that had anything secret */
};
extern struct far_counts far_count;
extern unsigned far_going; /* requests without their whole answer */

/* -- Objects --------------------------------------------------------------- */

struct far_object {
	char *key, *data;
	uint64_t size;
	char etag[40];
	int64_t mtime_s;
};

/* Bytes that all objects of "many" are made of: twice the same mebibyte. */
#define FAR_PATTERN ((size_t)1 << 20)
extern unsigned char far_pattern[2 * FAR_PATTERN];
extern unsigned char far_comments[2 * FAR_PATTERN]; /* of XML */
void far_make_pattern(void);
size_t far_pattern_start(const char *key);

/* Keys of "many" in order; their number. */
uint64_t far_many(void);
void far_many_key(uint64_t i, char out[64]);
/* The first whose key is greater (or not smaller); */
uint64_t far_many_after(const char *key, bool equal_too);
void far_many_object(const char *key, struct far_object *out);
bool far_many_find(const char *key, struct far_object *out);

struct far_object *far_find(const char *bucket, const char *key);
void far_put(
	const char *bucket, const char *key, const char *data, uint64_t size);
void far_delete(const char *bucket, const char *key);
bool far_has_bucket(const char *bucket);
/* Objects of a bucket in order of their keys, joined "bucket/key". */
uint64_t far_stored(const char *bucket, uint64_t *first);
struct far_object *far_stored_at(uint64_t i);

/* -- Requests -------------------------------------------------------------- */

struct far_header {
	const char *name, *value;
};

struct far_request {
	const char *method, *target; /* as sent */
	const char *path;	     /* raw, without the query */
	const char *query;	     /* raw, or "" */
	struct far_header headers[64];
	unsigned nheaders;
	const char *body;
	size_t body_len;
};

const char *far_header(const struct far_request *r, const char *name);

/* The value of a query's name, decoded; "" if it is not there. */
void far_query(
	const struct far_request *r, const char *name, char *out, size_t size);
void far_decode(char *text, bool plus);

struct far_answer {
	unsigned status;
	char headers[2048];
	char *body;		      /* malloc'ed, or NULL */
	const unsigned char *pattern; /* else where in the pattern, and */
	size_t pattern_at;
	uint64_t length; /* of the body as announced */
	uint64_t send;	 /* bytes really sent, then the connection is cut */
	double delay_ms;
	bool never, head_only, unsized, object;
};

void far_handle(const struct far_request *r, struct far_answer *a);

#define FAR_OTHER_REGION "IllegalLocationConstraintException"

/* NULL: it is right; else the code of the error. */
const char *far_verify(const struct far_request *r);
/* Credentials that live for a while, as JSON or XML fields. */
void far_issue(char id[64], char secret[96], char token[96], char expires[40],
	int64_t *expires_s);
const char *far_secret_of(const char *id, char out[96]);
double far_now_ms(void);

#endif

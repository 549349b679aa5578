/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for remote services: an S3 store with faults, speeds and millions
 * of keys, and the services that hand out credentials. One thread, loopback
 * only. far.c has the loop, far_answer.c the answers, far_keys.c the objects,
 * far_sign.c the verification of signatures, which shares no code with what it
 * verifies.
 */
#ifndef TESTS_FAR_H
#define TESTS_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changed at any time by GET /-/set?name=value&... */
struct far_settings {
	double delay_ms, list_ms; /* times to the first byte */
	double rate; /* bytes a second for all bodies; 0: no limit */
	double busy, never, cut, bad_range, no_range, error_doc, bad_etag;
	double endless, loop;	  /* shares of answers, 0 to 1 */
	double expire_s;	  /* life of credentials */
	double verify;		  /* 1: check signatures */
	double files, size, dirs; /* properties of the bucket "many" */
	double retry_after, skew_s, no_list, truncate_xml, down;
	/* another region is right: 1: the document names it; 2: a header names
	 * it */
	double move;
	double no_size; /* 1: listings have no sizes */
	double payer;	/* 1: requests must say that they pay */
	double away; /* the port to which requests for objects are redirected */
	/* share of answers without a length: the end of the connection ends the
	 * object */
	double no_length;
	double same; /* 1: all stored objects have one version */
	/* 1: redirects from a directory's name; a missing one gives 404 */
	double web;
	double code;	 /* the HTTP status of all answers about objects */
	double archived; /* 1: objects have been moved to an archive */
	double no_after; /* 1: listings do not know start-after */
	/* 1: every other page of a listing has no keys; 2: none has, without
	 * end */
	double blank;
	double flood; /* HTTP status of all answers, which have no end */
	double nagle; /* 1: new connections send headers and body separately,
		       * as they would by default */
	double only;  /* N: of the lasting keys, only AKN has not expired */
};
extern struct far_settings far_set;

struct far_counts {
	uint64_t requests, /* without those of the tests */
		gets, heads, lists, puts, busy, never, cut, refused, services,
		hosts, secrets, bytes, connections,
		object_bytes, /* bytes that are of objects */
		most, /* most requests at a time, without those of the tests */
		most_bytes, /* most bytes requested at a time */
		authorized; /* requests that contained a secret */
};
extern struct far_counts far_count;
extern unsigned far_going; /* requests whose answer is incomplete */

/* -- Objects --------------------------------------------------------------- */

struct far_object {
	char *key, *data;
	uint64_t size;
	char etag[40];
	int64_t mtime_s;
};

/* All objects of "many" consist of these bytes: twice the same mebibyte. */
#define FAR_PATTERN ((size_t)1 << 20)
extern unsigned char far_pattern[2 * FAR_PATTERN];
extern unsigned char far_comments[2 * FAR_PATTERN]; /* comments of XML */
void far_make_pattern(void);
size_t far_pattern_start(const char *key);

/* Sort the keys of "many". Returns their number. */
uint64_t far_many(void);
void far_many_key(uint64_t i, char out[64]);
/* The index of the first key that is greater (or not smaller). */
uint64_t far_many_after(const char *key, bool equal_too);
void far_many_object(const char *key, struct far_object *out);
bool far_many_find(const char *key, struct far_object *out);

struct far_object *far_find(const char *bucket, const char *key);
void far_put(
	const char *bucket, const char *key, const char *data, uint64_t size);
void far_delete(const char *bucket, const char *key);
bool far_has_bucket(const char *bucket);
/* Find the objects of a bucket, in order of their keys "bucket/key". Returns
 * their number. */
uint64_t far_stored(const char *bucket, uint64_t *first);
struct far_object *far_stored_at(uint64_t i);

/* -- Requests -------------------------------------------------------------- */

struct far_header {
	const char *name, *value;
};

struct far_request {
	const char *method, *target; /* as the client sent them */
	const char *path;	     /* raw, without the query */
	const char *query;	     /* raw, or "" */
	struct far_header headers[64];
	unsigned nheaders;
	const char *body;
	size_t body_len;
};

const char *far_header(const struct far_request *r, const char *name);

/* Get the decoded value of a name in the query; "" if it is missing. */
void far_query(
	const struct far_request *r, const char *name, char *out, size_t size);
void far_decode(char *text, bool plus);

struct far_answer {
	unsigned status;
	char headers[2048];
	char *body;		      /* from malloc(), or NULL */
	const unsigned char *pattern; /* otherwise a place in the pattern */
	size_t pattern_at;
	uint64_t length; /* announced length of the body */
	uint64_t send; /* bytes to send, after which the connection is closed */
	double delay_ms;
	bool never, head_only, unsized, object;
};

void far_handle(const struct far_request *r, struct far_answer *a);

#define FAR_OTHER_REGION "IllegalLocationConstraintException"

/* Check the signature. Returns NULL if it is right, otherwise the code of the
 * error. */
const char *far_verify(const struct far_request *r);
/* Write credentials of limited life as JSON or XML fields. */
void far_issue(char id[64], char secret[96], char token[96], char expires[40],
	int64_t *expires_s);
const char *far_secret_of(const char *id, char out[96]);
double far_now_ms(void);

#endif

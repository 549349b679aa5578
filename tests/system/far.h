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

/* Settings. GET /-/set?name=value&... changes them at any time. */
struct far_settings {
	/* time to the first byte of an answer; the same for listings */
	double delay_ms, list_ms;
	double rate; /* bytes a second for all bodies; 0: no limit */
	double busy, never, cut, bad_range, no_range, error_doc, bad_etag;
	/* fractions of answers with these faults, 0 to 1 */
	double endless, loop;
	double expire_s;	  /* seconds after which credentials expire */
	double verify;		  /* 1: check signatures */
	double files, size, dirs; /* properties of the bucket "many" */
	double retry_after, skew_s, no_list, truncate_xml, down;
	/* the bucket is in another region; 1: the document of the error names
	 * it; 2: a header does */
	double move;
	double no_size; /* 1: listings have no sizes */
	/* 1: requests must have the header by which the requester pays */
	double payer;
	double away; /* the port to which requests for objects are redirected */
	/* fraction of answers without a length, which end with the connection
	 */
	double no_length;
	double same; /* 1: all stored objects have one version */
	/* 1: a directory's name is redirected; a missing directory gives 404 */
	double web;
	double code;	 /* the HTTP status of all answers about objects */
	double archived; /* 1: objects have been moved to an archive */
	double no_after; /* 1: listings ignore start-after */
	/* 1: every other page of a listing has no keys; 2: none has, without
	 * end */
	double blank;
	double flood; /* HTTP status of all answers; their bodies never end */
	/* 1: new connections use Nagle's algorithm, so headers and body arrive
	 * separately */
	double nagle;
	double only; /* N: all lasting keys except AKN have expired */
};
extern struct far_settings far_set;

struct far_counts {
	uint64_t requests, /* number of requests, without those of the tests */
		gets, heads, lists, puts, busy, never, cut, refused, services,
		hosts, secrets, bytes, connections,
		object_bytes, /* number of sent bytes of objects */
		/* highest number of requests at a time, without those of the
		 * tests */
		most,
		most_bytes, /* highest number of requested bytes at a time */
		authorized; /* number of requests that had a secret */
};
extern struct far_counts far_count;
/* number of requests whose answer was not sent completely */
extern unsigned far_going;

/* -- Objects --------------------------------------------------------------- */

struct far_object {
	char *key, *data;
	uint64_t size;
	char etag[40];
	int64_t mtime_s;
};

/* The content of all objects of "many". The array has the same mebibyte twice.
 */
#define FAR_PATTERN ((size_t)1 << 20)
extern unsigned char far_pattern[2 * FAR_PATTERN];
/* comments of XML, for the bodies of endless documents */
extern unsigned char far_comments[2 * FAR_PATTERN];
void far_make_pattern(void);
size_t far_pattern_start(const char *key);

/* Sort the keys of "many". Returns their number. */
uint64_t far_many(void);
void far_many_key(uint64_t i, char out[64]);
/* Returns the index of the first key that is greater than `key`, or equal to it
 * if equal_too. */
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
	/* method and target as the client sent them */
	const char *method, *target;
	const char *path;  /* path as sent, without the query */
	const char *query; /* query as sent, or "" */
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
	char *body; /* allocated body, or NULL */
	/* without a body: where to read in the pattern */
	const unsigned char *pattern;
	size_t pattern_at;
	uint64_t length; /* length of the body in the header */
	/* number of bytes to send before the connection is closed */
	uint64_t send;
	double delay_ms;
	bool never, head_only, unsized, object;
};

void far_handle(const struct far_request *r, struct far_answer *a);

#define FAR_OTHER_REGION "IllegalLocationConstraintException"

/* Check the signature. Returns NULL if it is right, otherwise the error code of
 * S3. */
const char *far_verify(const struct far_request *r);
/* Write credentials that expire, as fields of JSON or XML. */
void far_issue(char id[64], char secret[96], char token[96], char expires[40],
	int64_t *expires_s);
const char *far_secret_of(const char *id, char out[96]);
double far_now_ms(void);

#endif

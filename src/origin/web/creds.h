/* SPDX-License-Identifier: MIT */
/* Finds credentials for S3 in the places where AWS' own tools search. A thread
 * renews them before they expire. Readers copy the current credentials and
 * never wait. No message contains a secret. */
#ifndef WEB_CREDS_H
#define WEB_CREDS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/err.h"

struct creds;

#define CREDS_TOKEN_MAX 8192

struct secret {
	char access_key[256];
	char key[512];
	char token[CREDS_TOKEN_MAX]; /* "" if there is none */
	time_t expires_s;	     /* time at which they expire; 0: never */
	unsigned generation;	     /* grows with each renewal */
};

struct creds_config {
	const char *profile; /* the profile of --profile, or NULL */
	const char *ca_file; /* CA certificates for the services, or NULL */
	const char *region;  /* region for STS; NULL: that of the profile */
	/* if there are no credentials at the start, search again later */
	bool later;
	_Atomic uint64_t *renewed; /* a counter of renewals */
	/* Called after each renewal. `why` is NULL, or says without secrets why
	 * the renewal failed. May be NULL. */
	void (*ended)(void *arg, const char *why);
	void *arg;
};

/* Find credentials. If they expire or may change, start the thread. Waits for
 * services, at most a few seconds each. Returns 0; -ENOENT if there are none,
 * with the places that were searched in err; or another -errno. */
int creds_new(struct creds **out, const struct creds_config *config,
	struct error *err);
void creds_free(struct creds *c); /* NULL is allowed */

/* Copy the current credentials. Returns false while they are being renewed
 * because they have expired or the server has refused them. */
bool creds_get(struct creds *c, struct secret *out);

/* Note that, according to the server, the credentials of `generation` have
 * expired. creds_get() does not return them any more, unless a renewal returns
 * the same ones. */
void creds_expired(struct creds *c, unsigned generation);

/*
 * Get a setting of the profile in ~/.aws/config: `region` or `endpoint_url`.
 * Returns false if it is not set.
 */
bool creds_profile_setting(
	const char *profile, const char *name, char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Finds credentials for S3 in the places where AWS' own tools look. A thread
 * renews them before they expire. Readers copy the current ones and never wait.
 * Secrets are never printed.
 */
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
	time_t expires_s;	     /* 0: never */
	unsigned generation;	     /* grows with each renewal */
};

struct creds_config {
	const char *profile; /* --profile, or NULL */
	const char *ca_file; /* CA certificates for the services, or NULL */
	const char *region;  /* for STS; NULL: the profile's */
	bool later;	     /* if there are none at the start, keep looking */
	_Atomic uint64_t *renewed; /* a counter */
	/* Called after each renewal. `why` is the reason why it failed, without
	 * secrets, or NULL. May be NULL. */
	void (*ended)(void *arg, const char *why);
	void *arg;
};

/*
 * Find credentials, and start the thread if they expire or may change. Waits
 * for services, at most a few seconds each. Returns 0, -ENOENT if there are
 * none, with the places searched in err, or another -errno.
 */
int creds_new(struct creds **out, const struct creds_config *config,
	struct error *err);
void creds_free(struct creds *c); /* NULL is allowed */

/* Copy the current credentials. Returns false if they are being renewed,
 * because they have expired or the server refused them. */
bool creds_get(struct creds *c, struct secret *out);

/*
 * Report that, according to the server, the credentials of `generation` have
 * expired. They are not handed out again unless a renewal brings the same ones.
 */
void creds_expired(struct creds *c, unsigned generation);

/*
 * Get a setting of the profile in ~/.aws/config: `region` or `endpoint_url`.
 * Returns false if it is not set.
 */
bool creds_profile_setting(
	const char *profile, const char *name, char *out, size_t size);

#endif

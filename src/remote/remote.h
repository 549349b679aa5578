/* SPDX-License-Identifier: MIT */
/*
 * Origins far away: an S3 bucket (s3://BUCKET[/PREFIX]) and a web server
 * (http(s)://HOST/PATH/), over libcurl. Both are origins as origin/origin.h
 * describes; callbacks run on the engine's loop threads.
 */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <stdbool.h>

#include "base/counters.h"
#include "base/err.h"
#include "base/events.h"
#include "origin/origin.h"

/* Settings from the mount's options. Strings are copied. */
struct remote_config {
	const char *endpoint_url; /* NULL: AWS_ENDPOINT_URL_S3, or AWS itself */
	const char *region;	  /* NULL: environment, profile, the server */
	const char *profile;	  /* NULL: AWS_PROFILE, or "default" */
	bool no_sign_request;
	bool requester_pays;
	bool insecure_tls;
	bool http2;
	unsigned loops, depth; /* 0: the defaults */
	struct counters *counters;
	const struct event_sink *events; /* gets no secrets; may be NULL */
};

/*
 * Check how SOURCE is written and make it canonical: without slashes at its
 * end. -EINVAL with err set; also for user names, passwords and query strings
 * in it. The caller frees *out.
 */
int remote_resolve(const char *source, char **out, struct error *err);

/*
 * An origin for SOURCE as remote_resolve() made it. Finds credentials, but
 * asks the store itself nothing. -errno with err set.
 */
int remote_new(struct origin **out, const char *source,
	const struct remote_config *config, struct error *err);

/*
 * Ask the store once whether SOURCE can be read; waits at most 5 s. 0, or
 * -errno with what is wrong and what would do. Not for a mount whose names
 * are known already.
 */
int remote_probe(struct origin *o, struct error *err);

/*
 * Read one whole object of at most `most` bytes; the text, with a NUL after it,
 * is the caller's to free. `url` may be of s3, http or https. Waits for the
 * store. 0, or -errno with err set.
 */
int remote_fetch(const char *url, const struct remote_config *config,
	size_t most, char **text, size_t *bytes, struct error *err);

/* The last thing that went wrong there, in words; "" for nothing. */
void remote_last_error(struct origin *o, struct error *err);

#endif

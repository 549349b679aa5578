/* SPDX-License-Identifier: MIT */
/*
 * Remote origins: an S3 bucket (s3://BUCKET[/PREFIX]) and a web server
 * (http(s)://HOST/PATH/), over libcurl. Both are origins as origin/origin.h
 * describes; callbacks run on the threads of the loops.
 */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>

#include "common/base/counters.h"
#include "common/base/err.h"
#include "common/base/events.h"
#include "origin/origin.h"

/* Settings from the mount's options. Strings are copied. */
struct object_config {
	/* NULL: AWS_ENDPOINT_URL_S3 decides, or it is AWS itself */
	const char *endpoint_url;
	const char *region;  /* NULL: environment, profile or server decide */
	const char *profile; /* NULL: AWS_PROFILE decides, or it is "default" */
	bool no_sign_request;
	bool requester_pays;
	bool insecure_tls;
	/* if there are no credentials, requests wait until there are some */
	bool creds_later;
	bool http2;
	unsigned loops, depth; /* 0 stands for the defaults */
	struct counters *counters;
	/* its messages contain no secrets; may be NULL */
	const struct event_sink *events;
};

/*
 * Check the form of SOURCE and make it canonical, without slashes at its end.
 * Returns -EINVAL with err set if it is malformed or contains a user name, a
 * password or a query string. The caller frees *out.
 */
int object_resolve(const char *source, char **out, struct error *err);

/* Get the dataset as tiers record it: SOURCE, as returned by object_resolve(),
 * and the store if that is not AWS, because buckets of two stores may have the
 * same name. The caller frees *out. Returns 0, or -ENOMEM with err set. */
int object_dataset(const char *source, const struct object_config *config,
	char **out, struct error *err);

/*
 * Create an origin for SOURCE, as returned by object_resolve(). This finds
 * credentials, but sends no request to the store. Returns 0, or -errno with err
 * set. With creds_later, requests wait while there are no credentials.
 */
int object_new(struct origin **out, const char *source,
	const struct object_config *config, struct error *err);

/* Ask the store once whether SOURCE can be read; waits at most 5 s. Returns 0,
 * or -errno with the problem and its remedy in err. A mount whose names are
 * already known need not call this. */
int object_probe(struct origin *o, struct error *err);

/*
 * Get the size of one file of the source; waits until `until_ns` at most.
 * Returns 0, or -errno with err set: -ENOENT if there is no such file.
 */
int object_size(struct origin *o, const char *path, uint64_t until_ns,
	uint64_t *size_bytes, struct error *err);

/* Read one whole object of at most `most` bytes. The caller frees the text,
 * which has a NUL after it. The scheme of `url` is s3, http or https. Waits at
 * most 4.5 s for the first byte, and as long for each later one. Returns 0, or
 * -errno with err set. */
int object_fetch(const char *url, const struct object_config *config,
	size_t most, char **text, size_t *bytes, struct error *err);

/* Get the message of the last failure; "" if there was none. */
void object_last_error(struct origin *o, struct error *err);

#endif

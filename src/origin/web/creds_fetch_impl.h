/* SPDX-License-Identifier: MIT */
/* The services and files that have credentials; shared by the files creds*.c.
 */
#ifndef WEB_CREDS_FETCH_IMPL_H
#define WEB_CREDS_FETCH_IMPL_H

#include <stddef.h>

#include "origin/web/body.h"
#include "origin/web/creds.h"

/* -- creds_fetch.c: services; calls block for a few seconds at most -------- */

#define SERVICE_MS 3000u

struct query {
	const char *url;
	const char *method;  /* NULL: GET without a body, POST with one */
	const char *headers; /* lines of the header, or NULL */
	const char *body;    /* may be NULL */
	const char *ca_file; /* may be NULL */
	unsigned timeout_ms;
	bool direct;	/* never use a proxy */
	time_t ahead_s; /* result: the service's clock minus ours */
};

/* Ask a service for credentials. `what` and `advice` are for messages. The time
 * at which the credentials expire is converted to the clock of this machine. */
int ask_service(struct query *f, const char *what, const char *advice,
	struct secret *out, struct error *err);

/* Overwrite a string, because it held a secret, and release it. */
void wipe_bytes(struct bytes *b);

/* Get credentials from the container's service. Returns -ENOENT if the
 * environment does not name one. */
int fetch_container(const char *ca_file, struct secret *out, struct error *err);

/* Get the credentials of this instance's role. Returns -ENOENT if there is no
 * such service, or if AWS_EC2_METADATA_DISABLED is set. */
int fetch_instance(struct secret *out, struct error *err);

/* Parse JSON or XML with AccessKeyId, in the form that services and
 * credential_process use. */
int secret_from_text(const char *text, size_t len, struct secret *out);

/* -- creds_role.c: services of AWS ------------------------------------------
 */

/* A request to STS: get the credentials of a role, for a web identity's token
 * or for other credentials. */
struct role {
	const char *arn, *session; /* if session is NULL: "refrain" */
	const char *external_id;   /* may be NULL */
	const char *token;	   /* token of a web identity, or NULL */
	/* if there is no token: the other credentials */
	const struct secret *from;
	const char *region, *ca_file;
};
int fetch_role(const struct role *role, struct secret *out, struct error *err);

/* A request to SSO: get the credentials of a role, for the token that `aws sso
 * login` has stored. */
struct sso {
	const char *token, *region, *account, *role, *ca_file;
};
int fetch_sso(const struct sso *sso, struct secret *out, struct error *err);

/* -- creds_file.c ---------------------------------------------------------- */

/* Get the credentials of a named profile, or from the places to which it
 * refers. Returns -ENOENT if it has none. */
int profile_secret(const char *profile, const char *region, const char *ca_file,
	struct secret *out, struct error *err);

/* Returns a number that changes whenever one of the files with profiles
 * changes. */
uint64_t profile_stamp(void);

#endif

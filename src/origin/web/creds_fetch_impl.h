/* SPDX-License-Identifier: MIT */
/* Shared by the files about credentials: the services and files that have them.
 * Private to them. */
#ifndef WEB_CREDS_FETCH_IMPL_H
#define WEB_CREDS_FETCH_IMPL_H

#include <stddef.h>

#include "origin/web/body.h"
#include "origin/web/creds.h"

/* -- creds_fetch.c: services; they block, a few seconds at most ------------ */

#define SERVICE_MS 3000u

struct query {
	const char *url;
	const char *method;  /* NULL: GET, or POST with a body */
	const char *headers; /* lines, or NULL */
	const char *body;    /* or NULL */
	const char *ca_file; /* or NULL */
	unsigned timeout_ms;
	bool direct;	/* never use a proxy */
	time_t ahead_s; /* set by the call: the service's clock minus ours */
};

/* Ask a service for credentials; `what` and `advice` are for messages. The time
 * at which the credentials expire is converted to this machine's clock. */
int ask_service(struct query *f, const char *what, const char *advice,
	struct secret *out, struct error *err);

/* Release a string after overwriting it, because it held a secret. */
void wipe_bytes(struct bytes *b);

/* Ask the container's service. Returns -ENOENT if the environment names none.
 */
int fetch_container(const char *ca_file, struct secret *out, struct error *err);

/* Get the credentials of this instance's role. Returns -ENOENT if there is no
 * such service, or AWS_EC2_METADATA_DISABLED is set. */
int fetch_instance(struct secret *out, struct error *err);

/* Parse JSON or XML with AccessKeyId, as services and credential_process write
 * it. */
int secret_from_text(const char *text, size_t len, struct secret *out);

/* -- creds_role.c: the same of AWS' own ------------------------------------ */

/* A request to STS: exchange a web identity token, or other credentials, for
 * those of a role. */
struct role {
	const char *arn, *session; /* session NULL: "refrain" */
	const char *external_id;   /* or NULL */
	const char *token;	   /* a web identity's token, or NULL */
	const struct secret *from; /* credentials to use if there is no token */
	const char *region, *ca_file;
};
int fetch_role(const struct role *role, struct secret *out, struct error *err);

/* A request to SSO: get the role's credentials with the token that `aws sso
 * login` has stored. */
struct sso {
	const char *token, *region, *account, *role, *ca_file;
};
int fetch_sso(const struct sso *sso, struct secret *out, struct error *err);

/* -- creds_file.c ---------------------------------------------------------- */

/* Get the credentials of a named profile, also from the places that it refers
 * to. Returns -ENOENT if it has none. */
int profile_secret(const char *profile, const char *region, const char *ca_file,
	struct secret *out, struct error *err);

/* A number that changes whenever one of the profiles' files does. */
uint64_t profile_stamp(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Searches the places of credentials in order, and renews credentials. Each
 * origin that signs has one thread, which waits until it is time to renew,
 * until a file changes, or until a server has refused the current credentials.
 * Readers copy the credentials under a lock that is never held during I/O. */
#include "origin/web/creds.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "origin/web/creds_fetch_impl.h"

/* Credentials are renewed this long before they expire, or after 3/4 of their
 * life if that is earlier. */
#define EARLY_S 300
#define AGAIN_NS (2 * NS_PER_S)
#define LOOK_NS (5 * NS_PER_S)

enum creds_kind { ENVIRONMENT, WEB_IDENTITY, PROFILE, CONTAINER, INSTANCE };

struct creds {
	uint32_t magic;
	/* Set once. */
	char *profile, *ca_file, *region;
	_Atomic uint64_t *renewed;
	void (*ended)(void *arg, const char *why);
	void *arg;
	pthread_t thread;
	bool started;
	enum creds_kind kind;

	/* guards the members below; no lock is taken while it is held */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct secret now;
	uint64_t stamp;	 /* profile_stamp() when the files were read */
	uint64_t due_ns; /* time to renew; UINT64_MAX: never */
	/* time before which they are not renewed, even if `wanted` */
	uint64_t again_ns;
	/* A renewal has just returned the same credentials, so until this time
	 * refusals do not count */
	uint64_t same_ns;
	bool wanted;  /* renew now; do not wait for due_ns */
	bool refused; /* the server has refused the credentials `now` */
	bool stop;
};

/* -- The chain ------------------------------------------------------------- */

static int from_environment(struct secret *out, struct error *err)
{
	const char *id = getenv("AWS_ACCESS_KEY_ID");
	const char *key = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN");

	if (!id || !*id || !key || !*key)
		return -ENOENT;
	if (strlen(id) >= sizeof(out->access_key) ||
		strlen(key) >= sizeof(out->key) ||
		(token && strlen(token) >= sizeof(out->token)))
		return error_set(err, -ENAMETOOLONG,
			"the credentials in the environment are too long");
	strcpy(out->access_key, id);
	strcpy(out->key, key);
	strcpy(out->token, token ? token : "");
	return 0;
}

static int from_web_identity(
	struct creds *c, struct secret *out, struct error *err)
{
	const char *file = getenv("AWS_WEB_IDENTITY_TOKEN_FILE");
	struct bytes token = {0};
	struct role role = {
		.arn = getenv("AWS_ROLE_ARN"),
		.session = getenv("AWS_ROLE_SESSION_NAME"),
		.region = c->region,
		.ca_file = c->ca_file,
	};
	int rc;

	if (!file || !*file || !role.arn || !*role.arn)
		return -ENOENT;
	rc = bytes_read_file(file, &token);
	if (rc < 0)
		return error_set(err, rc, "cannot read '%s': %m", file);
	role.token = bytes_get(&token);
	rc = fetch_role(&role, out, err);
	bytes_release(&token);
	return rc;
}

static int ask_place(struct creds *c, enum creds_kind kind, struct secret *out,
	struct error *err)
{
	switch (kind) {
	case ENVIRONMENT:
		return from_environment(out, err);
	case WEB_IDENTITY:
		return from_web_identity(c, out, err);
	case PROFILE:
		return profile_secret(
			c->profile, c->region, c->ca_file, out, err);
	case CONTAINER:
		return fetch_container(c->ca_file, out, err);
	case INSTANCE:
		return fetch_instance(out, err);
	}
	return -ENOENT;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			return true;
	return false;
}

/* Get credentials from one place. Returns -ENOENT without a message if nothing
 * is configured there. Refuses control characters: a secret from a file often
 * ends with a line break, which would begin another header. */
static int provide(struct creds *c, enum creds_kind kind, struct secret *out,
	struct error *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = ask_place(c, kind, out, err);
	if (rc < 0 && (rc != -ENOENT || err->msg[0]))
		return err->msg[0]
			? rc
			: error_set(err, rc, "cannot get credentials: %m");
	if (rc == 0 &&
		(has_control(out->access_key) || has_control(out->key) ||
			has_control(out->token)))
		return error_set(err, -EINVAL,
			"the credentials contain a line break or another "
			"control character; remove it");
	return rc;
}

static int none_found(const struct creds *c, struct error *err)
{
	const char *named = c->profile ? c->profile : getenv("AWS_PROFILE");

	if (named && *named)
		return error_set(err, -ENOENT,
			"profile '%s' has no credentials; check "
			"~/.aws/credentials and ~/.aws/config",
			named);
	return error_set(err, -ENOENT,
		"no credentials found; set AWS_ACCESS_KEY_ID and "
		"AWS_SECRET_ACCESS_KEY, name a profile with --profile, or use "
		"--no-sign-request for a public bucket");
}

/* Use the first place that has credentials. If a place is configured but fails,
 * the search ends there. */
static int find_credentials(
	struct creds *c, struct secret *out, struct error *err)
{
	enum creds_kind first = c->profile ? PROFILE : ENVIRONMENT;
	enum creds_kind last = c->profile ? PROFILE : INSTANCE;

	for (enum creds_kind k = first; k <= last; k++) {
		struct error why = {""};
		int rc = provide(c, k, out, &why);

		if (rc == -ENOENT && !why.msg[0])
			continue;
		c->kind = k;
		if (rc < 0)
			*err = why;
		return rc;
	}
	return none_found(c, err);
}

/* -- Renewal --------------------------------------------------------------- */

/* Returns the time at which to renew credentials that were fetched just now. */
static uint64_t due_after(const struct secret *s)
{
	int64_t left = s->expires_s - time(NULL);
	int64_t early = left / 4 < EARLY_S ? left / 4 : EARLY_S;

	if (s->expires_s == 0)
		return UINT64_MAX;
	if (left <= 0)
		return clock_now_ns() + AGAIN_NS;
	return clock_now_ns() + (uint64_t)(left - early) * NS_PER_S;
}

static bool is_same(const struct secret *a, const struct secret *b)
{
	return strcmp(a->access_key, b->access_key) == 0 &&
		strcmp(a->key, b->key) == 0 && strcmp(a->token, b->token) == 0;
}

static void renew_failed(struct creds *c, int rc, const struct error *err)
{
	if (c->ended)
		c->ended(c->arg, err->msg[0] ? err->msg : strerror(-rc));
	pthread_mutex_lock(&c->lock);
	c->again_ns = clock_now_ns() + AGAIN_NS;
	c->due_ns = c->again_ns;
}

/* Requires the lock, but releases it while services are asked. */
static void renew(struct creds *c)
{
	struct secret fresh;
	struct error err = {""};
	uint64_t stamp;
	bool same, news; /* a service may extend the life of the same key */
	int rc;

	ASSERT_HELD(&c->lock);
	pthread_mutex_unlock(&c->lock);
	stamp = profile_stamp();
	rc = c->now.access_key[0] ? provide(c, c->kind, &fresh, &err)
				  : find_credentials(c, &fresh, &err);
	if (rc < 0) {
		renew_failed(c, rc, &err);
		OPENSSL_cleanse(&fresh, sizeof(fresh));
		return;
	}
	pthread_mutex_lock(&c->lock);
	c->stamp = stamp;
	c->due_ns = due_after(&fresh);
	c->again_ns = clock_now_ns() + AGAIN_NS;
	/* requests that came during the renewal get the new credentials */
	c->wanted = false;
	c->refused = false;
	same = is_same(&fresh, &c->now);
	if (same)
		c->same_ns = c->again_ns;
	fresh.generation = c->now.generation + (same ? 0 : 1);
	news = !same || fresh.expires_s != c->now.expires_s;
	c->now = fresh;
	if (news && c->renewed)
		atomic_fetch_add_explicit(c->renewed, 1, memory_order_relaxed);
	if (news && c->ended)
		c->ended(c->arg, NULL);
	OPENSSL_cleanse(&fresh, sizeof(fresh));
}

static bool must_renew(const struct creds *c)
{
	uint64_t now = clock_now_ns();

	ASSERT_HELD(&c->lock);
	return (c->wanted && now >= c->again_ns) || now >= c->due_ns;
}

static void *renew_main(void *arg)
{
	struct creds *c = OBJECT(creds, arg);
	LOCK_SCOPE(&c->lock);

	while (!c->stop) {
		uint64_t until = clock_now_ns() + LOOK_NS;
		uint64_t stamp;

		if (must_renew(c))
			renew(c);
		if (c->stop || must_renew(c))
			continue;
		if (c->due_ns < until)
			until = c->due_ns;
		if (c->wanted && c->again_ns < until)
			until = c->again_ns;
		(void)cond_wait_until(&c->cond, &c->lock, until);
		if (c->kind != PROFILE || c->stop)
			continue;
		pthread_mutex_unlock(&c->lock);
		stamp = profile_stamp();
		pthread_mutex_lock(&c->lock);
		c->wanted |= stamp != c->stamp;
	}
	return NULL;
}

/* Requires the lock. Wake the thread, but only once, however many transfers
 * wait. */
static void want_renewal(struct creds *c)
{
	ASSERT_HELD(&c->lock);
	if (c->wanted)
		return;
	c->wanted = true;
	pthread_cond_signal(&c->cond);
}

bool creds_get(struct creds *c, struct secret *out)
{
	LOCK_SCOPE(&c->lock);

	if (c->refused ||
		(c->now.expires_s != 0 && time(NULL) >= c->now.expires_s)) {
		want_renewal(c);
		return false;
	}
	*out = c->now;
	return true;
}

void creds_expired(struct creds *c, unsigned generation)
{
	LOCK_SCOPE(&c->lock);

	if (c->now.generation != generation)
		return; /* the credentials were renewed since */
	if (clock_now_ns() < c->same_ns)
		return; /* a renewal would return the same credentials */
	c->refused = true;
	want_renewal(c);
}

/* -- Life ------------------------------------------------------------------ */

static char *copy_of(const char *text)
{
	return text && *text ? strdup(text) : NULL;
}

int creds_new(struct creds **out, const struct creds_config *config,
	struct error *err)
{
	struct creds *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return error_set(err, -ENOMEM, "%m");
	MAGIC_BEGIN(c, creds);
	c->profile = copy_of(config->profile);
	c->ca_file = copy_of(config->ca_file);
	c->region = copy_of(config->region);
	c->renewed = config->renewed;
	c->ended = config->ended;
	c->arg = config->arg;
	lock_init(&c->lock, RANK_CREDS);
	cond_init(&c->cond);
	c->stamp = profile_stamp();
	rc = find_credentials(c, &c->now, err);
	c->refused = rc < 0;
	if (rc == 0)
		c->due_ns = due_after(&c->now);
	/* due_ns is 0, so the thread searches again at once */
	else if (config->later)
		OPENSSL_cleanse(&c->now, sizeof(c->now));
	if (rc == 0 || config->later) {
		rc = -pthread_create(&c->thread, NULL, renew_main, c);
		c->started = rc == 0;
		if (rc < 0)
			(void)error_set(err, rc, "cannot start a thread: %m");
	}
	if (rc < 0) {
		creds_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void creds_free(struct creds *c)
{
	if (!c)
		return;
	if (c->started) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_signal(&c->cond);
		pthread_mutex_unlock(&c->lock);
		pthread_join(c->thread, NULL);
	}
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->lock);
	free(c->profile);
	free(c->ca_file);
	free(c->region);
	OPENSSL_cleanse(c, sizeof(*c));
	MAGIC_END(c);
	free(c);
}

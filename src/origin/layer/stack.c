/* SPDX-License-Identifier: MIT */
/* Resolves the name of a source by its scheme, and builds the stack of origins
 * that reads the source. Everything here runs once, in one thread, except the
 * functions for names and faults, which any thread may call. */
#include "origin/layer/stack_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "common/base/magic.h"
#include "common/base/mountinfo.h"
#include "common/base/path.h"
#ifdef HAVE_REMOTE
#include "origin/object/object.h"
#endif

/* -- Schemes --------------------------------------------------------------- */

struct scheme {
	const char *prefix;
	/* Sets *out to the source as tiers record it; the caller frees it.
	 * Returns 0, or -errno with err set. */
	int (*resolve)(const char *source, char **out, struct error *err);
	int (*open)(struct stack *s, struct origin **out, struct error *err);
};

static int resolve_synthetic(const char *source, char **out, struct error *err)
{
	*out = strdup(source);
	return *out ? 0 : error_set(err, -ENOMEM, "%m");
}

static int open_synthetic(
	struct stack *s, struct origin **out, struct error *err)
{
	return origin_synthetic_new(out, strchr(s->name, ':') + 1, err);
}

#ifdef HAVE_REMOTE
void stack_remote_config(const struct stack *s, struct object_config *config)
{
	*config = (struct object_config){
		.endpoint_url = s->config.endpoint_url,
		.region = s->config.region,
		.profile = s->config.profile,
		.no_sign_request = s->config.no_sign_request,
		.requester_pays = s->config.requester_pays,
		.insecure_tls = s->config.insecure_tls,
		.http2 = s->config.http2,
		.creds_later = s->kept,
		.counters = s->counters,
		.events = s->events,
	};
}

static int open_remote(struct stack *s, struct origin **out, struct error *err)
{
	struct object_config config;
	int rc;

	stack_remote_config(s, &config);
	rc = object_new(out, s->name, &config, err);
	s->remote = rc == 0 ? *out : NULL;
	return rc;
}
#else
static int object_resolve(const char *source, char **out, struct error *err)
{
	(void)out;
	return error_set(err, -EINVAL,
		"cannot mount '%s': this program was built without http and "
		"s3; build it with libcurl, OpenSSL and expat",
		source);
}

static int open_remote(struct stack *s, struct origin **out, struct error *err)
{
	(void)out;
	return error_set(err, -EINVAL, "cannot open '%s'", s->name);
}
#endif

static const struct scheme schemes[] = {
	{"synthetic:", resolve_synthetic, open_synthetic},
	{"s3://", object_resolve, open_remote},
	{"https://", object_resolve, open_remote},
	{"http://", object_resolve, open_remote},
	{NULL, NULL, NULL},
};

/* Returns the scheme of a source; NULL if the source is a path. */
static const struct scheme *scheme_of(const char *source)
{
	for (const struct scheme *s = schemes; s->prefix; s++)
		if (strncmp(source, s->prefix, strlen(s->prefix)) == 0)
			return s;
	return NULL;
}

static int resolve_path(struct stack *s, const char *source, struct error *err)
{
	struct stat st;

	s->name = realpath(source, NULL);
	if (!s->name)
		return error_set(err, -errno,
			"cannot open source '%s': %m; check the path, and that "
			"its storage is mounted",
			source);
	if (stat(s->name, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR,
			"cannot use source '%s': not a directory; name the "
			"directory that holds the dataset",
			source);
	return 0;
}

static int resolve_name(struct stack *s, struct error *err)
{
	const char *source = s->config.name;
	const struct scheme *scheme = scheme_of(source);
	int rc;

	if (scheme)
		return scheme->resolve(source, &s->name, err);
	if (strstr(source, "://"))
		return error_set(err, -EINVAL,
			"cannot mount '%.*s': supported sources are "
			"directories, s3://, https:// and http://; mount any "
			"other store as a directory first",
			(int)(strstr(source, "://") + 3 - source), source);
	rc = reach_directory(
		source, s->config.timeout_s, s->kept, &s->name, err);
	s->unreached = s->name;
	if (s->unreached)
		return 0;
	return rc < 0 ? rc : resolve_path(s, source, err);
}

static int resolve_dataset(struct stack *s, struct error *err)
{
#ifdef HAVE_REMOTE
	const struct scheme *scheme = scheme_of(s->name);
	struct object_config config;

	stack_remote_config(s, &config);
	if (scheme && scheme->open == open_remote)
		return object_dataset(s->name, &config, &s->dataset, err);
#endif
	s->dataset = strdup(s->name);
	return s->dataset ? 0 : error_set(err, -ENOMEM, "%m");
}

/* Resolve the path or URL of an index. Make a path absolute, because the daemon
 * changes its directory. */
static int resolve_text(
	const char *option, const char *typed, char **out, struct error *err)
{
	int rc;

	if (strstr(typed, "://")) {
		/* The message does not repeat the URL, because the URL may
		 * contain a secret. */
		rc = object_resolve(typed, out, err);
		return rc < 0 ? error_wrap(err, rc, "%s", option) : 0;
	}
	*out = path_of_mountpoint(typed);
	if (!*out)
		return error_set(err, -errno,
			"cannot read %s '%s': %m; give the path or URL of an "
			"index written by 'refrain index'",
			option, typed);
	return 0;
}

static bool is_remote(const struct stack *s)
{
	const struct scheme *scheme = scheme_of(s->name);

	return scheme && scheme->open == open_remote;
}

static int resolve_index(struct stack *s, struct error *err)
{
	if (!s->config.manifest)
		return 0;
	if (!is_remote(s))
		return error_set(err, -EINVAL,
			"--manifest is for sources of s3:// and https://; omit "
			"it, because '%s' is listed directly",
			s->name);
	return resolve_text("--manifest", s->config.manifest, &s->index, err);
}

/* Find the index with the levels: the one that --levels names, that of the
 * names, or a file of the source. */
static int resolve_levels(struct stack *s, struct error *err)
{
	size_t n = strlen(s->name);
	CLEANUP_FREE char *beside = NULL;

	if (!s->config.drop_bits)
		return s->config.levels ? error_set(err, -EINVAL,
						  "--levels is for --drop-bits "
						  "1 or 2; give both")
					: 0;
	if (scheme_of(s->name) && !is_remote(s))
		return error_set(err, -EINVAL,
			"--drop-bits is for datasets of JPEGs; omit it, "
			"because '%s' has none",
			s->name);
	if (s->config.levels)
		return resolve_text(
			"--levels", s->config.levels, &s->levels, err);
	if (s->index)
		s->levels = strdup(s->index);
	else if (asprintf(&beside, "%s%s" LEVELS_NAME, s->name,
			 s->name[n - 1] == '/' ? "" : "/") < 0)
		beside = NULL;
	else
		return resolve_text("--drop-bits", beside, &s->levels, err);
	return s->levels ? 0 : error_set(err, -ENOMEM, "%m");
}

int stack_new(struct stack **out, const struct stack_config *config, bool kept,
	struct error *err)
{
	struct stack *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return error_set(err, -ENOMEM, "%m");
	MAGIC_BEGIN(s, stack);
	s->config = *config;
	s->kept = kept;
	lock_init(&s->lock, RANK_STACK);
	rc = resolve_name(s, err);
	if (rc == 0)
		rc = resolve_dataset(s, err);
	if (rc == 0)
		rc = resolve_index(s, err);
	if (rc == 0)
		rc = resolve_levels(s, err);
	if (rc < 0)
		stack_free(s);
	else
		*out = s;
	return rc;
}

void stack_free(struct stack *s)
{
	if (!s)
		return;
	(void)pthread_mutex_destroy(&s->lock); /* no thread uses it any more */
	free(s->faults);
	free(s->levels);
	free(s->index);
	free(s->dataset);
	free(s->name);
	MAGIC_END(s);
	free(s);
}

const char *stack_name(const struct stack *s)
{
	return s->name;
}

const char *stack_dataset(const struct stack *s)
{
	return s->dataset;
}

bool stack_unreached(const struct stack *s)
{
	return s->unreached;
}

bool stack_contains(const struct stack *s, const char *path)
{
	return !scheme_of(s->name) &&
		(path_is_inside(path, s->name) ||
			mountinfo_is_inside(path, s->name));
}

bool stack_is_inside(const struct stack *s, const char *path)
{
	return !scheme_of(s->name) &&
		(path_is_inside(s->name, path) ||
			mountinfo_is_inside(s->name, path));
}

/* -- The origins --------------------------------------------------------- */

static int open_bottom(struct stack *s, struct origin **out, struct error *err)
{
	const struct scheme *scheme = scheme_of(s->name);

	if (scheme)
		return scheme->open(s, out, err);
	return s->unreached ? origin_posix_new_later(out, s->name, err)
			    : origin_posix_new(out, s->name, err);
}

/* Put a fault origin above *o. */
static int add_faults(struct stack *s, struct origin **o, struct timers *timers,
	struct error *err)
{
	int rc = origin_fault_new(&s->fault, *o, s->config.fault, timers, err);

	if (rc < 0)
		return rc;
	*o = s->fault;
	s->faults = strdup(s->config.fault);
	return 0;
}

int stack_open(struct stack *s, struct timers *timers,
	struct counters *counters, const struct event_sink *events,
	struct error *err)
{
	struct retry_config retry = {
		.total_ns = s->config.timeout_s * NS_PER_S,
		.events = events,
	};
	struct origin *o = NULL;
	int rc;

	s->counters = counters;
	s->events = events;
	rc = open_bottom(s, &o, err);
	if (rc == 0 && s->index)
		rc = given_open(s, &o, err);
	if (rc < 0)
		return rc;
	if (s->levels)
		rc = levels_open(s, &o, err);
	if (rc == 0 && s->config.fault)
		rc = add_faults(s, &o, timers, err);
	if (rc == 0)
		rc = origin_retry_new(
			&s->top, o, &retry, timers, counters, err);
	if (rc < 0)
		origin_free(o);
	return rc;
}

bool stack_close(struct stack *s)
{
	return origin_free(steal_ptr(&s->top));
}

struct origin *stack_origin(const struct stack *s)
{
	return s->top;
}

void stack_health(const struct stack *s, struct origin_health *health)
{
	origin_retry_health(s->top, health);
}

/* If a tier has saved the names of the source, do not ask the source at the
 * start. */
int stack_probe(
	struct stack *s, const struct stack_names *names, struct error *err)
{
#ifdef HAVE_REMOTE
	struct file_attr root;
#endif

	s->names = *names;
	if (s->named)
		return given_check(s, err);
	levels_check(s);
#ifdef HAVE_REMOTE
	if (!s->remote || names->root(names->arg, &root))
		return 0;
	if (object_probe(s->remote, err) < 0)
		return error_wrap(err, -EIO, "cannot read '%s'", s->name);
#else
	(void)err;
#endif
	return 0;
}

/* -- Faults for drills --------------------------------------------------- */

int stack_fault(struct stack *s, const char *spec, struct error *err)
{
	int rc;

	if (!s->fault)
		return error_set(err, -ENOENT,
			"this mount has no fault origin; mount it with "
			"--fault \"\" to be able to inject faults");
	rc = origin_fault_set(s->fault, spec, err);
	if (rc < 0)
		return rc;
	LOCK_SCOPE(&s->lock);
	free(s->faults);
	s->faults = strdup(spec);
	return 0;
}

char *stack_faults(struct stack *s)
{
	LOCK_SCOPE(&s->lock);

	return s->faults ? strdup(s->faults) : NULL;
}

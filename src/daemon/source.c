/* SPDX-License-Identifier: MIT */
/*
 * Resolves the command line: the source and its origin, the mountpoint and its
 * current mount, the tiers' directories. Runs once, before any thread exists.
 */
#include "daemon/mount_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#ifdef HAVE_REMOTE
#include "remote/remote.h"
#endif

/* -- Schemes --------------------------------------------------------------- */

struct scheme {
	const char *prefix;
	/* The source as tiers record it, to be freed. -errno, err set. */
	int (*resolve)(const char *source, char **out, struct error *err);
	int (*open)(struct mount *m, struct origin **out, struct error *err);
};

static int resolve_synthetic(const char *source, char **out, struct error *err)
{
	*out = strdup(source);
	return *out ? 0 : error_set(err, -ENOMEM, "%m");
}

static int open_synthetic(
	struct mount *m, struct origin **out, struct error *err)
{
	return origin_synthetic_new(out, strchr(m->source, ':') + 1, err);
}

#ifdef HAVE_REMOTE
void mount_remote_config(struct mount *m, struct remote_config *config)
{
	*config = (struct remote_config){
		.endpoint_url = m->options.endpoint_url,
		.region = m->options.region,
		.profile = m->options.profile,
		.no_sign_request = m->options.no_sign_request,
		.requester_pays = m->options.requester_pays,
		.insecure_tls = m->options.insecure_tls,
		.http2 = m->options.http2,
		.counters = &m->counters,
		.events = m->events,
	};
}

static int open_remote(struct mount *m, struct origin **out, struct error *err)
{
	struct remote_config config;
	int rc;

	mount_remote_config(m, &config);
	rc = remote_new(out, m->source, &config, err);
	m->remote = rc == 0 ? *out : NULL;
	return rc;
}
#else
static int remote_resolve(const char *source, char **out, struct error *err)
{
	(void)out;
	return error_set(err, -EINVAL,
		"cannot mount '%s': this program was built without http and "
		"s3; build it with libcurl, libcrypto and expat",
		source);
}

static int open_remote(struct mount *m, struct origin **out, struct error *err)
{
	(void)out;
	return error_set(err, -EINVAL, "cannot open '%s'", m->source);
}
#endif

static const struct scheme schemes[] = {
	{"synthetic:", resolve_synthetic, open_synthetic},
	{"s3://", remote_resolve, open_remote},
	{"https://", remote_resolve, open_remote},
	{"http://", remote_resolve, open_remote},
	{NULL, NULL, NULL},
};

/* NULL: a path. */
static const struct scheme *scheme_of(const char *source)
{
	for (const struct scheme *s = schemes; s->prefix; s++)
		if (strncmp(source, s->prefix, strlen(s->prefix)) == 0)
			return s;
	return NULL;
}

static bool is_inside(const char *path, const char *top)
{
	size_t n = strlen(top);

	if (strcmp(top, "/") == 0)
		return true;
	return strncmp(path, top, n) == 0 &&
		(path[n] == '/' || path[n] == '\0');
}

static bool is_in_source(const struct mount *m, const char *path)
{
	return !scheme_of(m->source) && is_inside(path, m->source);
}

static int resolve_path(struct mount *m, const char *source, struct error *err)
{
	struct stat st;

	m->source = realpath(source, NULL);
	if (!m->source)
		return error_set(err, -errno,
			"cannot open source '%s': %m; check the path, and that "
			"its storage is mounted",
			source);
	if (stat(m->source, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR,
			"cannot use source '%s': not a directory; name the "
			"directory that holds the dataset",
			source);
	return 0;
}

/* A list of names is kept in the last tier: nobody needs to be asked. */
static bool has_manifest(const struct mount *m)
{
	size_t n = m->options.ntiers;
	char path[PATH_MAX];

	return n > 0 &&
		(size_t)snprintf(path, sizeof(path), "%s/%s",
			m->options.tiers[n - 1].dir,
			MANIFEST_FILE) < sizeof(path) &&
		access(path, F_OK) == 0;
}

int mount_resolve_source(struct mount *m, struct error *err)
{
	const char *source = m->options.source;
	const struct scheme *scheme = scheme_of(source);
	int rc;

	if (scheme)
		return scheme->resolve(source, &m->source, err);
	if (strstr(source, "://"))
		return error_set(err, -EINVAL,
			"cannot mount '%.*s': known are directories, s3://, "
			"https:// and http://; mount another store as a "
			"directory first",
			(int)(strstr(source, "://") + 3 - source), source);
	rc = reach_directory(
		source, m->options.timeout_s, has_manifest(m), &m->source, err);
	m->unreached = m->source;
	if (m->unreached)
		return 0;
	return rc < 0 ? rc : resolve_path(m, source, err);
}

/* -- The mountpoint ------------------------------------------------------ */

static int probe_mountpoint(const char *path, struct error *err)
{
	int rc = fs_probe(path);

	if (rc == -ENOTCONN) {
		/* A dead daemon left this mount behind. */
		rc = fs_detach(path);
		if (rc < 0)
			return error_set(err, rc,
				"cannot detach the dead mount on '%s': %m; "
				"try 'umount -l %s'",
				path, path);
		return 0;
	}
	if (rc == 1)
		return error_set(err, -EBUSY,
			"'%s' is a refrain mount already; 'refrain umount %s' "
			"ends it",
			path, path);
	if (rc == -EBUSY)
		return error_set(err, -EBUSY,
			"'%s' has something else mounted on it; choose another "
			"directory",
			path);
	return 0;
}

static int check_empty(const char *path, struct error *err)
{
	CLEANUP_DIR DIR *dir = opendir(path);
	const struct dirent *e;

	if (!dir && errno == ENOTDIR)
		return error_set(err, -ENOTDIR,
			"cannot use mountpoint '%s': %m; name an empty "
			"directory",
			path);
	if (!dir)
		return error_set(err, -errno,
			"cannot use mountpoint '%s': %m; make it with "
			"'mkdir -p %s', or choose a directory of your own",
			path, path);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return error_set(err, -ENOTEMPTY,
				"mountpoint '%s' is not empty; choose an empty "
				"directory",
				path);
	return 0;
}

static int check_mountpoint(struct mount *m, struct error *err)
{
	const char *typed = m->options.mountpoint;
	char *real;
	int rc;

	m->mountpoint = path_of_mountpoint(typed);
	if (!m->mountpoint)
		return error_set(err, -errno,
			"cannot use mountpoint '%s': %m; make it with "
			"'mkdir -p %s'",
			typed, typed);
	rc = probe_mountpoint(m->mountpoint, err);
	if (rc < 0)
		return rc;
	real = realpath(m->mountpoint, NULL);
	if (real) {
		free(m->mountpoint);
		m->mountpoint = real;
		rc = probe_mountpoint(m->mountpoint, err);
		if (rc < 0)
			return rc;
	}
	/* It would list itself, in itself, without end. */
	if (is_in_source(m, m->mountpoint))
		return error_set(err, -EINVAL,
			"mountpoint '%s' is inside the source; choose another "
			"directory",
			typed);
	return check_empty(m->mountpoint, err);
}

/* -- Names from an index ---------------------------------------------------
 */

/* Absolute, as the background process leaves the directory. */
static int resolve_index(struct mount *m, struct error *err)
{
	const char *typed = m->options.manifest;
	const struct scheme *scheme = scheme_of(m->source);

	if (!typed)
		return 0;
	if (!scheme || scheme->open != open_remote)
		return error_set(err, -EINVAL,
			"--manifest is for sources of s3:// and https://; "
			"omit it, as '%s' is listed by itself",
			m->source);
	m->index = strstr(typed, "://") ? strdup(typed)
					: path_of_mountpoint(typed);
	if (!m->index)
		return error_set(err, -errno,
			"cannot read --manifest '%s': %m; give the path or "
			"URL of what 'refrain index' wrote",
			typed);
	return 0;
}

/* -- Tiers --------------------------------------------------------------- */

static void note_new_tier(struct mount *m, size_t i)
{
	CLEANUP_FD int dir =
		open(m->tier_dir[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

	m->tier_dir_new[i] = dir < 0 && errno == ENOENT;
	m->tier_new[i] =
		m->tier_dir_new[i] || (dir >= 0 && !store_is_tier(dir));
}

/* Two that are the same are for the store to refuse. */
static int check_nested(const struct mount *m, size_t i, struct error *err)
{
	for (size_t k = 0; k < i; k++) {
		const char *a = m->tier_dir[i], *b = m->tier_dir[k];
		bool a_inside = is_inside(a, b);

		if (a_inside != is_inside(b, a))
			return error_set(err, -EINVAL,
				"cache directory '%s' is inside cache "
				"directory '%s'; choose another place",
				a_inside ? a : b, a_inside ? b : a);
	}
	return 0;
}

/* Absolute, so that the background process may leave the directory. */
static int resolve_tier(struct mount *m, size_t i, struct error *err)
{
	const char *typed = m->options.tiers[i].dir;
	CLEANUP_FREE char *path = path_of_mountpoint(typed);
	CLEANUP_FREE char *real = NULL;
	int rc;

	if (!path)
		return error_set(err, -errno,
			"cannot use cache directory '%s': %m; create its "
			"parent directory",
			typed);
	real = realpath(path, NULL);
	m->tier_dir[i] = real ? steal_ptr(&real) : steal_ptr(&path);
	if (is_in_source(m, m->tier_dir[i]))
		return error_set(err, -EINVAL,
			"cache directory '%s' is inside the source, which is "
			"never written to; choose another place",
			typed);
	if (is_inside(m->tier_dir[i], m->mountpoint))
		return error_set(err, -EINVAL,
			"cache directory '%s' is inside the mountpoint; choose "
			"another place",
			typed);
	rc = check_nested(m, i, err);
	if (rc < 0)
		return rc;
	m->options.tiers[i].dir = m->tier_dir[i];
	note_new_tier(m, i);
	return 0;
}

int mount_resolve(struct mount *m, struct error *err)
{
	int rc = mount_resolve_source(m, err);

	if (rc == 0)
		rc = resolve_index(m, err);
	if (rc == 0)
		rc = check_mountpoint(m, err);
	for (size_t i = 0; rc == 0 && i < m->options.ntiers; i++)
		rc = resolve_tier(m, i, err);
	return rc;
}

/* -- The origin ---------------------------------------------------------- */

static int open_bottom(struct mount *m, struct origin **out, struct error *err)
{
	const struct scheme *scheme = scheme_of(m->source);

	if (scheme)
		return scheme->open(m, out, err);
	return m->unreached ? origin_posix_new_later(out, m->source, err)
			    : origin_posix_new(out, m->source, err);
}

/* A store whose names are known is asked when they are not any more. */
int mount_probe_origin(struct mount *m, struct error *err)
{
#ifdef HAVE_REMOTE
	struct node_info root;

	if (m->named)
		return given_check(m, err);
	if (!m->remote ||
		(manifest_get(m->manifest, NODE_ROOT, &root) == 0 &&
			root.listed))
		return 0;
	if (remote_probe(m->remote, err) < 0)
		return error_wrap(err, -EIO, "cannot read '%s'", m->source);
#else
	(void)m;
	(void)err;
#endif
	return 0;
}

int mount_open_origin(struct mount *m, struct error *err)
{
	struct retry_config retry = {
		.total_ns = m->options.timeout_s * NS_PER_S,
		.events = m->events,
	};
	struct origin *o = NULL, *next = NULL;
	int rc = open_bottom(m, &o, err);

	if (rc == 0 && m->index)
		rc = given_open(m, &o, err);
	if (rc < 0)
		return rc;
	if (m->options.fault) {
		rc = origin_fault_new(
			&next, o, m->options.fault, m->timers, err);
		if (rc < 0) {
			origin_free(o);
			return rc;
		}
		m->faults.origin = o = next;
		m->faults.spec = strdup(m->options.fault);
	}
	rc = origin_retry_new(
		&m->origin, o, &retry, m->timers, &m->counters, err);
	if (rc < 0)
		origin_free(o);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * Names from --manifest: an index in a file or at an URL. Kept names are the
 * truth, as for any source; only another content of the file, seen at the
 * start, or a refresh lists it again. The root's version has the tag of the
 * content.
 */
#include "daemon/mount_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#ifdef HAVE_REMOTE
#include "remote/remote.h"
#endif

#define INDEX_BYTES_MAX ((size_t)4 << 30)

/* -- The text -------------------------------------------------------------- */

static bool given_is_url(const struct mount *m)
{
	return strstr(m->index, "://") != NULL;
}

static int given_read(int fd, char **text, size_t *bytes)
{
	CLEANUP_FREE char *to = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if ((uint64_t)st.st_size > INDEX_BYTES_MAX)
		return -EFBIG;
	to = malloc((size_t)st.st_size + 1);
	if (!to)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, to + n, (size_t)st.st_size - n);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break; /* somebody cut it; its lines say the rest */
		n += got > 0 ? (size_t)got : 0;
	}
	to[n] = '\0';
	*text = steal_ptr(&to);
	*bytes = n;
	return 0;
}

static int given_load(void *arg, char **text, size_t *bytes, struct error *err)
{
	struct mount *m = arg;
	CLEANUP_FD int fd = -1;
	int rc;

#ifdef HAVE_REMOTE
	if (given_is_url(m)) {
		struct remote_config config;

		mount_remote_config(m, &config);
		return remote_fetch(
			m->index, &config, INDEX_BYTES_MAX, text, bytes, err);
	}
#endif
	fd = open(m->index, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	rc = given_read(fd, text, bytes);
	return rc < 0 ? error_set(err, rc, "cannot read '%s': %m", m->index)
		      : 0;
}

/* -- The origin ------------------------------------------------------------ */

static bool given_known(void *arg, const char *path, struct file_attr *attr)
{
	const struct mount *m = arg;
	struct node_info info;

	if (manifest_resolve(m->manifest, path, &info) < 0)
		return false;
	*attr = info.attr;
	return true;
}

static void given_failed(void *arg, const struct error *why)
{
	const struct mount *m = arg;
	struct event e = {.kind = EVENT_INDEX_UNUSABLE, .text = why->msg};

	event_report(m->events, &e);
}

int given_open(struct mount *m, struct origin **o, struct error *err)
{
	struct origin_named_config config = {
		.load = given_load,
		.known = given_known,
		.failed = given_failed,
		.arg = m,
	};
	int rc = origin_named_new(&m->named, *o, &config, err);

	if (rc < 0)
		origin_free(*o);
	*o = m->named;
	return rc;
}

/* Nothing need be asked or read again: 1; 0; or -errno. */
static int given_is_kept(struct mount *m, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	struct node_info root;
	size_t bytes;
	int rc;

	if (manifest_get(m->manifest, NODE_ROOT, &root) < 0 || !root.listed)
		return 0;
	/* A store that cannot be reached keeps nobody from what is kept. */
	if (given_is_url(m))
		return 1;
	rc = given_load(m, &text, &bytes, err);
	if (rc < 0)
		return rc;
	m->index_tag = hash64(text, bytes, 0);
	m->scan.relist = root.attr.version.tag != m->index_tag;
	return !m->scan.relist;
}

int given_check(struct mount *m, struct error *err)
{
	struct error why = {""};
	int rc = given_is_kept(m, err);

	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = origin_named_check(m->named, err);
	if (rc == 0)
		return 0;
#ifdef HAVE_REMOTE
	if (rc == -EIO || rc == -EACCES || rc == -ETIMEDOUT)
		remote_last_error(m->remote, &why);
#endif
	if (why.msg[0])
		(void)error_set(err, rc, "%s", why.msg);
	return error_wrap(err, rc, "cannot use --manifest '%s'", m->index);
}

void given_listed(struct mount *m)
{
	struct node_info root;

	if (!m->scan.relist || manifest_get(m->manifest, NODE_ROOT, &root) < 0)
		return;
	root.attr.version.tag = m->index_tag;
	manifest_put_root(m->manifest, &root.attr);
	m->scan.relist = false;
}

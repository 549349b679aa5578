/* SPDX-License-Identifier: MIT */
/* Names from --manifest: an index in a file or at a URL. A tier may have saved
 * these names; they are used like those of any source. The index is listed
 * again only on a refresh, or if its content has changed at the start of the
 * mount. The tag of the root's version stands for the content. */
#include "origin/layer/stack_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"
#include "common/base/magic.h"
#ifdef HAVE_REMOTE
#include "origin/object/object.h"
#endif

#define INDEX_BYTES_MAX ((size_t)4 << 30)

/* -- The text -------------------------------------------------------------- */

static bool given_is_url(const char *where)
{
	return strstr(where, "://") != NULL;
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
			/* the file has become shorter since fstat(), which
			 * parsing will notice */
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	to[n] = '\0';
	*text = steal_ptr(&to);
	*bytes = n;
	return 0;
}

int given_text(struct stack *s, const char *where, char **text, size_t *bytes,
	struct error *err)
{
	CLEANUP_FD int fd = -1;
	int rc;

#ifdef HAVE_REMOTE
	if (given_is_url(where)) {
		struct object_config config;

		stack_remote_config(s, &config);
		return object_fetch(
			where, &config, INDEX_BYTES_MAX, text, bytes, err);
	}
#else
	(void)s;
#endif
	fd = open(where, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	rc = given_read(fd, text, bytes);
	return rc < 0 ? error_set(err, rc, "cannot read '%s': %m", where) : 0;
}

static int given_load(void *arg, char **text, size_t *bytes, struct error *err)
{
	struct stack *s = OBJECT(stack, arg);

	return given_text(s, s->index, text, bytes, err);
}

static int given_fits(void *arg, const char *path, uint64_t size_bytes,
	uint64_t until_ns, struct error *err)
{
#ifdef HAVE_REMOTE
	const struct stack *s = OBJECT(stack, arg);
	uint64_t found;
	int rc = object_size(s->remote, path, until_ns, &found, err);

	if (rc < 0 && rc != -ENOENT)
		return rc;
	return rc == 0 && found == size_bytes;
#else
	(void)arg, (void)path, (void)size_bytes, (void)until_ns;
	return error_set(err, -EINVAL, "there are no remote sources");
#endif
}

/* -- The origin ------------------------------------------------------------ */

static bool given_known(void *arg, const char *path, struct file_attr *attr)
{
	const struct stack *s = OBJECT(stack, arg);

	return s->names.known(s->names.arg, path, attr);
}

static void given_failed(void *arg, const struct error *why)
{
	const struct stack *s = OBJECT(stack, arg);
	struct event e = {.kind = EVENT_INDEX_UNUSABLE, .text = why->msg};

	event_report(s->events, &e);
}

int given_open(struct stack *s, struct origin **o, struct error *err)
{
	struct origin_named_config config = {
		.load = given_load,
		.fits = given_fits,
		.known = given_known,
		.failed = given_failed,
		.tag_seed = s->config.drop_bits,
		.arg = s,
	};
	int rc = origin_named_new(&s->named, *o, &config, err);

	if (rc < 0)
		origin_free(*o);
	*o = s->named;
	return rc;
}

/* Can the mount use the names that a tier has saved? Returns 1 if it can, 0 if
 * the index must be read again, or -errno. */
static int given_is_kept(struct stack *s, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	struct file_attr root;
	size_t bytes;
	int rc;

	if (!s->names.root(s->names.arg, &root))
		return 0;
	/* If the store of the index cannot be reached, the saved names are
	 * still used. */
	if (given_is_url(s->index))
		return 1;
	rc = given_load(s, &text, &bytes, err);
	if (rc < 0)
		return rc;
	s->index_tag = hash64(text, bytes, s->config.drop_bits);
	s->relist = root.version.tag != s->index_tag;
	return !s->relist;
}

int given_check(struct stack *s, struct error *err)
{
	int rc = given_is_kept(s, err);

	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = origin_named_check(s->named, err);
	return rc < 0
		? error_wrap(err, rc, "cannot use --manifest '%s'", s->index)
		: 0;
}

bool stack_must_relist(const struct stack *s)
{
	return s->relist;
}

void stack_listed(struct stack *s)
{
	struct file_attr root;

	if (!s->relist || !s->names.root(s->names.arg, &root))
		return;
	root.version.tag = s->index_tag;
	s->names.put_root(s->names.arg, &root);
	s->relist = false;
}

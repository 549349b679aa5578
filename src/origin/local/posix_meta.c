/* SPDX-License-Identifier: MIT */
/* The stats and lists of the posix origin. Each is one job of a thread pool,
 * because these calls can hang. Only the job uses its memory. */
#include "origin/local/posix_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define BATCH_ENTRIES 512
#define ATTR_MASK                                                              \
	(STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_SIZE |        \
		STATX_MTIME)

struct meta {
	struct thread_job job;
	struct posix *p;
	struct origin_request *req;
};

/* A batch of entries that is being filled; `text` has their names and targets.
 */
struct batch {
	struct origin_list *list;
	size_t n, used;
	struct file_entry entries[BATCH_ENTRIES];
	char text[BATCH_ENTRIES * (NAME_MAX + 1) + PATH_MAX];
};

/* Convert attributes. Returns false for a kind of file that is not part of a
 * dataset. */
static bool attr_of(const struct statx *stx, struct file_attr *attr)
{
	switch (stx->stx_mode & S_IFMT) {
	case S_IFREG:
		attr->kind = KIND_FILE;
		break;
	case S_IFDIR:
		attr->kind = KIND_DIR;
		break;
	case S_IFLNK:
		attr->kind = KIND_LINK;
		break;
	default:
		return false;
	}
	attr->version = (struct file_version){
		.size_bytes = stx->stx_size,
		.mtime_ns = clock_file_ns(
			stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec),
	};
	attr->mode = stx->stx_mode & 07777;
	attr->uid = stx->stx_uid;
	attr->gid = stx->stx_gid;
	return true;
}

/* Get the attributes of `name` in the directory `fd`, or of `fd` itself if
 * `name` is "". Returns 1 with attr set, and `target` for a link; 0 if the name
 * is gone or is a kind of file that is not part of a dataset; or -errno. */
static int posix_meta_look(
	int fd, const char *name, struct file_attr *attr, char target[PATH_MAX])
{
	struct statx stx = {0};
	ssize_t n;

	if (statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, ATTR_MASK,
		    &stx))
		return errno == ENOENT ? 0 : -errno;
	if (!attr_of(&stx, attr))
		return 0;
	if (attr->kind != KIND_LINK)
		return 1;
	n = readlinkat(fd, name, target, PATH_MAX);
	/* -EINVAL: another kind of file has just replaced the link */
	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : -errno;
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return 1;
}

static void run_stat(struct thread_job *job)
{
	struct meta *m = CONTAINER_OF(job, struct meta, job);
	struct origin_stat *s = origin_stat_of(m->req);
	unsigned turn = posix_root_turn(m->p);
	CLEANUP_FD int fd = beneath_open(m->p->root_fd, s->path, O_PATH);
	struct file_attr attr;
	char target[PATH_MAX];
	int rc = fd;

	if (rc >= 0)
		rc = posix_meta_look(fd, "", &attr, target);
	if (rc == 0)
		rc = -ENOENT;
	rc = rc < 0 ? posix_judge(m->p, turn, rc) : 0;
	free(m);
	if (rc == 0) {
		s->attr = &attr;
		s->target = attr.kind == KIND_LINK ? target : NULL;
	}
	origin_answer(&s->req, rc);
}

static void flush(struct batch *b)
{
	if (b->n > 0)
		b->list->batch(b->list, b->entries, b->n);
	b->n = 0;
	b->used = 0;
}

static const char *keep(struct batch *b, const char *text)
{
	size_t size = strlen(text) + 1;
	char *kept = b->text + b->used;

	memcpy(kept, text, size);
	b->used += size;
	return kept;
}

static int add_entry(struct batch *b, int dir_fd, const char *name)
{
	struct file_entry *e;
	char target[PATH_MAX];
	int rc;

	/* The text must have room for the longest name or target. */
	if (b->n == BATCH_ENTRIES ||
		sizeof(b->text) - b->used < NAME_MAX + 1 + PATH_MAX)
		flush(b);
	e = &b->entries[b->n];
	rc = posix_meta_look(dir_fd, name, &e->attr, target);
	if (rc <= 0)
		return rc;
	e->name = keep(b, name);
	e->target = e->attr.kind == KIND_LINK ? keep(b, target) : NULL;
	b->n++;
	return 0;
}

/* List a directory. Names that vanish during the listing are left out. */
static int list_dir(struct batch *b, DIR *dir)
{
	for (;;) {
		struct dirent *d;
		int rc;

		errno = 0;
		d = readdir(dir);
		if (!d)
			return -errno;
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		rc = add_entry(b, dirfd(dir), d->d_name);
		if (rc)
			return rc;
	}
}

static int list_path(struct posix *p, struct origin_list *l)
{
	CLEANUP_FD int fd =
		beneath_open(p->root_fd, l->path, O_RDONLY | O_DIRECTORY);
	CLEANUP_FREE struct batch *b = malloc(sizeof(*b));
	CLEANUP_DIR DIR *dir = NULL;
	int rc;

	if (fd < 0)
		return fd;
	if (!b)
		return -ENOMEM;
	b->list = l;
	b->n = b->used = 0;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)steal_fd(&fd);
	rc = list_dir(b, dir);
	if (rc)
		return rc;
	flush(b);
	return 0;
}

static void run_list(struct thread_job *job)
{
	struct meta *m = CONTAINER_OF(job, struct meta, job);
	struct origin_list *l = origin_list_of(m->req);
	unsigned turn = posix_root_turn(m->p);
	int rc = list_path(m->p, l);

	/* An empty root may be the bare mountpoint of storage that went away,
	 * so check it. */
	rc = posix_judge(m->p, turn, rc);
	free(m);
	origin_answer(&l->req, rc);
}

void posix_look(struct posix *p, struct origin_request *q)
{
	struct meta *m = calloc(1, sizeof(*m));

	if (!m) {
		late_answer(p->late, q);
		return;
	}
	m->p = p;
	m->req = q;
	thread_job_init(&m->job, q->op == ORIGIN_STAT ? run_stat : run_list);
	thread_pool_submit(p->pool, &m->job);
}

/* SPDX-License-Identifier: MIT */
/* The synthetic origin: a tree of any number of files whose names and bytes are
 * computed, for tests of scale. It stores nothing for a file. Requests are jobs
 * of a small pool; only the job uses its memory. */
#include "origin/origin.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/magic.h"
#include "common/base/thread_pool.h"
#include "common/base/words.h"
#include "origin/local/late_answers.h"

#define THREADS 4
/* The number of requests in flight, as for a disk, for which this origin stands
 * in. */
#define REQUESTS 64
#define FILES_A_DIR 1000
#define MTIME_NS (INT64_C(1000000000) * INT64_C(1000000000))
#define BATCH_ENTRIES 512
/* The bytes of a read are passed on in pieces of at most this length. */
#define PIECE_BYTES ((size_t)256 << 10)
/* Size of a buffer for a path: 'd', 20 digits, '/', 'f', 20 digits, ".bin" */
#define PATH_BYTES 64

struct synthetic {
	struct origin base;
	uint32_t magic;
	/* All members are set once. */
	struct thread_pool *pool;
	struct late *late;
	uint64_t files, size_bytes, seed, dirs, files_a_dir;
	int dir_digits, file_digits;
	uid_t uid;
	gid_t gid;
};

struct origin_file {
	char path[1];
};

/* A request in progress. */
struct job {
	struct thread_job job;
	struct synthetic *syn;
	struct origin_request *req;
	uint64_t words[]; /* bytes of a read, at most PIECE_BYTES */
};

static struct synthetic *synthetic_of(struct origin *o)
{
	return OBJECT(synthetic, o);
}

/* -- Bytes ----------------------------------------------------------------- */

/* Returns a word of the file: a permutation of 64 bits by a multiply, two
 * xorshifts and a multiply. */
static uint64_t word_at(uint64_t key, uint64_t index)
{
	uint64_t x = key + index * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ (x >> 29)) * UINT64_C(0xa0761d6478bd642f);
	return htole64(x ^ (x >> 32));
}

void origin_synthetic_fill(
	uint64_t seed, const char *path, uint64_t off, size_t len, void *buf)
{
	uint64_t key = hash64(path, strlen(path), seed);
	unsigned char *to = buf;

	while (len > 0) {
		uint64_t word = word_at(key, off / 8);
		size_t skip = off % 8;
		size_t n = 8 - skip;

		if (n == 8 && len >= 8) {
			memcpy(to, &word, 8); /* usually a whole word */
		} else {
			n = n < len ? n : len;
			memcpy(to, (unsigned char *)&word + skip, n);
		}
		to += n;
		off += n;
		len -= n;
	}
}

/* -- Names ----------------------------------------------------------------- */

static void dir_name(const struct synthetic *s, uint64_t dir, char *out)
{
	(void)snprintf(out, PATH_BYTES, "d%0*" PRIu64, s->dir_digits, dir);
}

static void file_name(const struct synthetic *s, uint64_t file, char *out)
{
	(void)snprintf(
		out, PATH_BYTES, "f%0*" PRIu64 ".bin", s->file_digits, file);
}

static uint64_t number_after(const char *text, char letter)
{
	return *text == letter ? strtoull(text + 1, NULL, 10) : UINT64_MAX;
}

/* Returns the kind of file at `path`, and gets the number of its directory; 0
 * if there is no such file. */
static enum file_kind synthetic_parse(
	const struct synthetic *s, const char *path, uint64_t *dir)
{
	const char *slash = strchr(path, '/');
	char dir_text[PATH_BYTES], file_text[PATH_BYTES];
	uint64_t file;

	if (*path == '\0')
		return KIND_DIR;
	*dir = number_after(path, 'd');
	if (*dir >= s->dirs)
		return 0;
	dir_name(s, *dir, dir_text);
	if (!slash)
		return strcmp(path, dir_text) == 0 ? KIND_DIR : 0;
	if ((size_t)(slash - path) != strlen(dir_text) ||
		memcmp(path, dir_text, strlen(dir_text)) != 0)
		return 0;
	file = number_after(slash + 1, 'f');
	if (file >= s->files || file / s->files_a_dir != *dir)
		return 0;
	file_name(s, file, file_text);
	return strcmp(slash + 1, file_text) == 0 ? KIND_FILE : 0;
}

static struct file_attr synthetic_attr_of(
	const struct synthetic *s, enum file_kind kind)
{
	struct file_attr attr = {
		.version = {kind == KIND_FILE ? s->size_bytes : 0, MTIME_NS, 0},
		.kind = kind,
		.mode = kind == KIND_FILE ? 0444 : 0555,
		.uid = s->uid,
		.gid = s->gid,
	};

	return attr;
}

/* -- Requests -------------------------------------------------------------- */

static int check_read(const struct synthetic *s, const struct origin_read *r)
{
	uint64_t dir;

	if (synthetic_parse(s, r->file->path, &dir) != KIND_FILE ||
		!version_equal(
			r->want, synthetic_attr_of(s, KIND_FILE).version))
		return -ESTALE;
	if (r->off > s->size_bytes || r->len > s->size_bytes - r->off)
		return -EIO;
	return 0;
}

static void synthetic_run_read(struct thread_job *job)
{
	struct job *j = CONTAINER_OF(job, struct job, job);
	struct origin_read *r = origin_read_of(j->req);
	int status = check_read(j->syn, r);

	for (size_t at = 0; status == 0 && at < r->len;) {
		size_t n = r->len - at;

		if (n > PIECE_BYTES)
			n = PIECE_BYTES;
		origin_synthetic_fill(
			j->syn->seed, r->file->path, r->off + at, n, j->words);
		r->data(r, r->off + at, j->words, n);
		at += n;
	}
	free(j);
	origin_answer(&r->req, status);
}

/* Does nothing: every read is answered within microseconds. */
static void synthetic_abandon(struct origin *o, struct origin_read *r)
{
	(void)o;
	(void)r;
}

static void synthetic_run_stat(struct thread_job *job)
{
	struct job *j = CONTAINER_OF(job, struct job, job);
	struct origin_stat *st = origin_stat_of(j->req);
	uint64_t dir;
	enum file_kind kind = synthetic_parse(j->syn, st->path, &dir);
	struct file_attr attr = synthetic_attr_of(j->syn, kind);

	free(j);
	st->attr = &attr;
	st->target = NULL;
	origin_answer(&st->req, kind ? 0 : -ENOENT);
}

/* Deliver the entries `first` to `last` - 1 of the root or of a directory. */
static void list_range(const struct synthetic *s, struct origin_list *l,
	enum file_kind kind, uint64_t first, uint64_t last)
{
	struct file_entry entries[BATCH_ENTRIES];
	char names[BATCH_ENTRIES][PATH_BYTES];

	while (first < last) {
		size_t n = 0;

		for (; n < BATCH_ENTRIES && first < last; n++, first++) {
			if (kind == KIND_DIR)
				dir_name(s, first, names[n]);
			else
				file_name(s, first, names[n]);
			entries[n].name = names[n];
			entries[n].target = NULL;
			entries[n].attr = synthetic_attr_of(s, kind);
		}
		l->batch(l, entries, n);
	}
}

static int synthetic_list_path(const struct synthetic *s, struct origin_list *l)
{
	uint64_t dir, first, last;
	enum file_kind kind = synthetic_parse(s, l->path, &dir);

	if (kind != KIND_DIR)
		return kind ? -ENOTDIR : -ENOENT;
	if (*l->path == '\0') {
		list_range(s, l, KIND_DIR, 0, s->dirs);
		return 0;
	}
	first = dir * s->files_a_dir;
	last = first + s->files_a_dir;
	list_range(s, l, KIND_FILE, first, last < s->files ? last : s->files);
	return 0;
}

static void synthetic_run_list(struct thread_job *job)
{
	struct job *j = CONTAINER_OF(job, struct job, job);
	struct origin_list *l = origin_list_of(j->req);
	int rc = synthetic_list_path(j->syn, l);

	free(j);
	origin_answer(&l->req, rc);
}

static void synthetic_start(struct origin *o, struct origin_request *q)
{
	static void (*const run[])(struct thread_job *) = {
		[ORIGIN_READ] = synthetic_run_read,
		[ORIGIN_STAT] = synthetic_run_stat,
		[ORIGIN_LIST] = synthetic_run_list,
	};
	struct synthetic *s = synthetic_of(o);
	size_t bytes = q->op == ORIGIN_READ ? origin_read_of(q)->len : 0;
	struct job *j;

	if (bytes > PIECE_BYTES)
		bytes = PIECE_BYTES;
	j = malloc(sizeof(*j) + (bytes + 7) / 8 * sizeof(j->words[0]));
	if (!j) {
		late_answer(s->late, q);
		return;
	}
	thread_job_init(&j->job, run[q->op]);
	j->syn = s;
	j->req = q;
	thread_pool_submit(s->pool, &j->job);
}

static struct origin_file *synthetic_file_new(
	struct origin *o, const char *path)
{
	(void)o;
	return (struct origin_file *)(void *)strdup(path);
}

static void synthetic_file_free(struct origin *o, struct origin_file *f)
{
	(void)o;
	free(f);
}

static bool synthetic_free(struct origin *o)
{
	struct synthetic *s = synthetic_of(o);

	late_free(s->late);
	if (!thread_pool_free(s->pool, UINT64_MAX / 4))
		return false;
	MAGIC_END(s);
	free(s);
	return true;
}

static int synthetic_read_now(
	struct origin *o, const struct origin_read *r, void *bytes)
{
	const struct synthetic *s = synthetic_of(o);

	if (check_read(s, r) < 0)
		return -EAGAIN;
	origin_synthetic_fill(s->seed, r->file->path, r->off, r->len, bytes);
	return 0;
}

static const struct origin_ops synthetic_ops = {
	.read_now = synthetic_read_now,
	.file_new = synthetic_file_new,
	.file_free = synthetic_file_free,
	.start = synthetic_start,
	.abandon = synthetic_abandon,
	.free = synthetic_free,
};

/* -- The specification ----------------------------------------------------- */

static const struct word_def synthetic_words[] = {
	{"files", WORD_SIZE, offsetof(struct synthetic, files)},
	{"size", WORD_SIZE, offsetof(struct synthetic, size_bytes)},
	{"seed", WORD_NUMBER, offsetof(struct synthetic, seed)},
	{"dirs", WORD_SIZE, offsetof(struct synthetic, dirs)},
	{NULL, WORD_TEXT, 0},
};

static int synthetic_digits(uint64_t greatest, int least)
{
	int n = 1;

	while (greatest >= 10) {
		greatest /= 10;
		n++;
	}
	return n > least ? n : least;
}

static int shape(struct synthetic *s, struct error *err)
{
	if (s->files == UINT64_MAX || s->size_bytes == UINT64_MAX)
		return error_set(
			err, -EINVAL, "both files=N and size=SIZE are needed");
	if (s->files > (UINT64_C(1) << 48) ||
		s->size_bytes > (UINT64_C(1) << 60))
		return error_set(
			err, -ERANGE, "at most 2^48 files of 2^60 bytes");
	if (s->dirs == 0)
		s->dirs = (s->files + FILES_A_DIR - 1) / FILES_A_DIR;
	if (s->dirs > s->files)
		s->dirs = s->files;
	s->files_a_dir = s->dirs ? (s->files + s->dirs - 1) / s->dirs : 1;
	s->dir_digits = synthetic_digits(s->dirs ? s->dirs - 1 : 0, 4);
	s->file_digits = synthetic_digits(s->files ? s->files - 1 : 0, 6);
	s->uid = geteuid();
	s->gid = getegid();
	return 0;
}

static int parse_spec(struct synthetic *s, const char *spec, struct error *err)
{
	int rc;

	/* the spec does not contain them */
	s->files = s->size_bytes = UINT64_MAX;
	rc = words_parse(s, synthetic_words, spec, err);
	return rc ? rc : shape(s, err);
}

int origin_synthetic_new(
	struct origin **out, const char *spec, struct error *err)
{
	static const struct origin_traits traits = {
		.request_bytes = PIECE_BYTES,
		.depth = REQUESTS,
		.chunk_bytes = PIECE_BYTES,
	};
	struct synthetic *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return error_set(err, -ENOMEM, "synthetic: %m");
	MAGIC_BEGIN(s, synthetic);
	origin_init(&s->base, &synthetic_ops, &traits);
	rc = parse_spec(s, spec, err);
	if (!rc) {
		rc = late_new(&s->late);
		if (!rc)
			rc = thread_pool_new(&s->pool, THREADS);
		if (rc)
			(void)error_set(err, rc, "cannot start threads: %m");
	}
	if (rc) {
		synthetic_free(&s->base);
		return error_wrap(err, rc, "synthetic:%s", spec);
	}
	*out = &s->base;
	return 0;
}

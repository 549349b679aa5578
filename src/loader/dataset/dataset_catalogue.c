/* SPDX-License-Identifier: MIT */
/*
 * The catalogue: the tables of a dataset as a file, in this machine's byte
 * order (doc/formats.md). It is mapped, so that all processes of a training job
 * share its memory. A new catalogue is written to a file with another name,
 * which is then renamed, so a mapped file is never truncated. Everything is
 * checked when the catalogue is mapped; lookups of examples check nothing.
 * Called by the driver of a look.
 */
#include "loader/dataset/dataset_catalogue_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/write.h"

#define CATALOGUE_MAGIC "refrdset"
#define CATALOGUE_VERSION 5u
/* The version of a catalogue without members. Older versions of the library can
 * read it, too. */
#define CATALOGUE_PLAIN 4u
#define CATALOGUE_ORDER 0x01020304u
/* When an mtime is read, it must be at least this old. If a file changes again
 * within the same tick of the file system's clock (2 s on FAT), its mtime stays
 * the same, and the change would not be noticed. */
#define CATALOGUE_QUIET_NS ((int64_t)(2 * NS_PER_S))
/* Incomplete files that are older than this, in seconds, are removed. */
#define CATALOGUE_STALE_S 600

struct catalogue_header {
	char magic[8];
	uint32_t version, order;
	struct hash128 key;
	uint32_t kind, record_bytes, label_bytes;
	uint32_t sections; /* number of sections; 0 in version 4 */
	uint64_t count, links, fingerprint;
	struct ds_skipped skipped;
	/* First the size of each section in bytes. Then the XXH3-64 of each
	 * section, with its index in the file as the seed. Last the XXH3-64 of
	 * all fields before it, with the version as the seed. */
	uint64_t words[2 * SECTIONS + 1];
};

_Static_assert(offsetof(struct catalogue_header, words) == 104, "no holes");
_Static_assert(sizeof(struct ds_watch) % 8 == 0 &&
		sizeof(struct ds_shard) % 8 == 0 &&
		sizeof(struct ds_class) % 8 == 0 &&
		sizeof(struct ds_whole) % 8 == 0 &&
		sizeof(struct ds_part) % 8 == 0 &&
		sizeof(struct ds_member) % 8 == 0,
	"sections are aligned");

/* The sections in their order in a file. */
static const enum ds_section sections_plain[] = {SECTION_WATCHES,
	SECTION_SHARDS, SECTION_CLASSES, SECTION_EXAMPLES, SECTION_TEXTS,
	SECTION_NAMES};
static const enum ds_section sections_all[] = {SECTION_WATCHES, SECTION_SHARDS,
	SECTION_CLASSES, SECTION_EXAMPLES, SECTION_MEMBERS, SECTION_TEXTS,
	SECTION_NAMES, SECTION_MEMBER_NAMES};

_Static_assert(sizeof(sections_all) / sizeof(*sections_all) == SECTIONS,
	"all sections are kept");

/* The sections of a catalogue, in the order in which they are stored. */
struct catalogue_form {
	const enum ds_section *section;
	uint32_t version, sections;
};

static struct catalogue_form catalogue_form(bool plain)
{
	return (struct catalogue_form){
		.section = plain ? sections_plain : sections_all,
		.version = plain ? CATALOGUE_PLAIN : CATALOGUE_VERSION,
		.sections = plain
			? sizeof(sections_plain) / sizeof(*sections_plain)
			: SECTIONS,
	};
}

/* Returns the size of the header without its own hash, in bytes. */
static size_t hashed_bytes(const struct catalogue_form *form)
{
	return offsetof(struct catalogue_header, words) +
		2 * form->sections * sizeof(uint64_t);
}

static size_t header_bytes(const struct catalogue_form *form)
{
	return hashed_bytes(form) + sizeof(uint64_t);
}

/* -- Names ----------------------------------------------------------------- */

/* Returns the key of the dataset and its options. */
static struct hash128 ds_catalogue_key(const struct look *l)
{
	const char *root = l->real_root ? l->real_root : "";
	struct {
		struct hash128 path, root;
		uint32_t source, record_bytes, label_bytes, any_file;
	} of = {
		hash128(l->real, strlen(l->real)),
		hash128(root, strlen(root)),
		(uint32_t)l->source,
		l->record_bytes,
		l->label_bytes,
		l->any_file,
	};

	if (l->members) {
		of.path = hash128(&of, sizeof(of));
		of.root = hash128(l->members_text, strlen(l->members_text));
	}
	return hash128(&of, sizeof(of));
}

/* Get the name of the file for this key. */
static void ds_catalogue_name(struct hash128 key, char name[CATALOGUE_NAME_MAX])
{
	static const char head[] = "examples-";

	memcpy(name, head, sizeof(head));
	*hash128_put(name + sizeof(head) - 1, key) = '\0';
}

/* Create a directory and its parent, because ~/.cache may be missing, too.
 * Errors are ignored, because opening the directory later shows them. */
static void make_dir(const char *path)
{
	CLEANUP_FREE char *parent =
		strndup(path, (size_t)(strrchr(path, '/') - path));

	if (parent)
		(void)mkdir(parent, 0700);
	(void)mkdir(path, 0700);
}

int ds_catalogue_open_dir(const char *path, bool make)
{
	CLEANUP_FD int fd = -1;
	struct stat st;

	if (make)
		make_dir(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return steal_fd(&fd);
}

/* -- Writing --------------------------------------------------------------- */

static void fill_header(const struct dataset *ds,
	const struct catalogue_form *form, struct hash128 key,
	struct catalogue_header *h)
{
	uint64_t *hash;

	*h = (struct catalogue_header){
		.version = form->version,
		.sections = ds->members ? form->sections : 0,
		.order = CATALOGUE_ORDER,
		.key = key,
		.kind = ds->kind,
		.record_bytes = ds->record_bytes,
		.label_bytes = ds->label_bytes,
		.count = ds->count,
		.links = ds->links,
		.fingerprint = ds->fingerprint,
		.skipped = ds->skipped,
	};
	memcpy(h->magic, CATALOGUE_MAGIC, sizeof(h->magic));
	hash = h->words + form->sections;
	for (unsigned i = 0; i < form->sections; i++) {
		const struct array *t = &ds->section[form->section[i]];

		h->words[i] = array_bytes(t);
		hash[i] = hash64(
			array_data(t) ? array_data(t) : "", array_bytes(t), i);
	}
	hash[form->sections] = hash64(h, hashed_bytes(form), form->version);
}

int ds_catalogue_create(int cache_fd, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(cache_fd, name, flags, 0600);
	struct stat st;

	if (fd >= 0 || errno != EEXIST)
		return fd < 0 ? -errno : fd;
	if (fstatat(cache_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_mtime > time(NULL) - CATALOGUE_STALE_S)
		return -EEXIST;
	/* If this fails, openat() fails, too */
	(void)unlinkat(cache_fd, name, 0);
	fd = openat(cache_fd, name, flags, 0600);
	return fd < 0 ? -errno : fd;
}

int ds_catalogue_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key)
{
	struct catalogue_form form = catalogue_form(!ds->members);
	char new_name[CATALOGUE_NAME_MAX + 8];
	struct catalogue_header h;
	CLEANUP_FD int fd = -1;
	int rc;

	(void)snprintf(new_name, sizeof(new_name), "%s.new", name);
	fd = ds_catalogue_create(cache_fd, new_name);
	if (fd < 0)
		return fd;
	fill_header(ds, &form, key, &h);
	rc = write_all(fd, &h, header_bytes(&form));
	for (unsigned i = 0; rc == 0 && i < form.sections; i++) {
		const struct array *t = &ds->section[form.section[i]];

		rc = write_all(fd, array_data(t), array_bytes(t));
	}
	/* The file is not synced to disk. If a power failure damages it, its
	 * checks fail and it is not used. */
	if (rc == 0 && renameat(cache_fd, new_name, cache_fd, name) < 0)
		rc = -errno;
	if (rc < 0)
		/* If this fails, a later process removes the file */
		(void)unlinkat(cache_fd, new_name, 0);
	return rc;
}

/* -- Checks ---------------------------------------------------------------- */

static bool text_at(const struct array *t, uint64_t at)
{
	return at < array_bytes(t); /* a NUL is at the end of `t` */
}

static bool ends_with_nul(const struct array *t)
{
	return array_bytes(t) == 0 ||
		((const char *)array_data(t))[array_bytes(t) - 1] == '\0';
}

static bool check_skipped(const struct dataset *ds)
{
	const struct array *texts = &ds->section[SECTION_TEXTS];
	const struct ds_skipped *s = &ds->skipped;

	return (!s->first_file || text_at(texts, s->first_file - 1)) &&
		(!s->first_class || text_at(texts, s->first_class - 1));
}

static bool check_watches(const struct dataset *ds)
{
	const struct array *t = &ds->section[SECTION_WATCHES];
	const struct ds_watch *w = array_data(t);

	for (uint64_t i = 0; i < array_count(t, sizeof(*w)); i++)
		if (!text_at(&ds->section[SECTION_TEXTS], w[i].path))
			return false;
	return array_bytes(t) % sizeof(*w) == 0 && array_bytes(t) > 0;
}

static bool check_shards(const struct dataset *ds)
{
	const struct array *t = &ds->section[SECTION_SHARDS];
	const struct ds_shard *s = array_data(t);

	for (uint64_t i = 0; i < array_count(t, sizeof(*s)); i++)
		if (!text_at(&ds->section[SECTION_TEXTS], s[i].file))
			return false;
	return array_bytes(t) % sizeof(*s) == 0 &&
		array_count(t, sizeof(*s)) <= UINT32_MAX;
}

static bool check_classes(const struct dataset *ds)
{
	const struct array *t = &ds->section[SECTION_CLASSES];
	const struct array *texts = &ds->section[SECTION_TEXTS];
	const struct ds_class *c = array_data(t);

	for (uint64_t i = 0; i < array_count(t, sizeof(*c)); i++)
		if (!text_at(texts, c[i].name) ||
			array_bytes(texts) - c[i].name <= c[i].bytes ||
			((const char *)array_data(
				texts))[c[i].name + c[i].bytes] ||
			c[i].label > INT32_MAX ||
			(i > 0 && c[i].label <= c[i - 1].label))
			return false;
	return array_bytes(t) % sizeof(*c) == 0;
}

static bool check_wholes(const struct dataset *ds)
{
	const struct ds_whole *w = array_data(&ds->section[SECTION_EXAMPLES]);
	const struct array *names = &ds->section[SECTION_NAMES];
	bool right = true;

	/* The loop does not end early, because it is faster without a
	 * branch. */
	for (uint64_t i = 0; i < ds->count; i++)
		right &= text_at(names, w[i].name) & (w[i].label >= -1);
	return right;
}

static bool check_parts(const struct dataset *ds)
{
	const struct ds_part *p = array_data(&ds->section[SECTION_EXAMPLES]);
	const struct ds_shard *s = array_data(&ds->section[SECTION_SHARDS]);
	const struct array *names = &ds->section[SECTION_NAMES];
	uint32_t shards = dataset_shards(ds);

	for (uint64_t i = 0; i < ds->count; i++)
		if (!text_at(names, p[i].name) || p[i].label < -1 ||
			p[i].shard >= shards ||
			p[i].offset > s[p[i].shard].bytes ||
			p[i].bytes > s[p[i].shard].bytes - p[i].offset)
			return false;
	return true;
}

static bool check_members(const struct dataset *ds)
{
	const struct array *t = &ds->section[SECTION_MEMBERS];
	const struct array *names = &ds->section[SECTION_MEMBER_NAMES];
	const struct ds_shard *s = array_data(&ds->section[SECTION_SHARDS]);
	const struct ds_part *p = array_data(&ds->section[SECTION_EXAMPLES]);
	const struct ds_member *m = array_data(t);

	if (array_bytes(t) != ds->members * ds->count * sizeof(*m) ||
		!ends_with_nul(names))
		return false;
	for (uint64_t i = 0; i < ds->members * ds->count; i++) {
		uint64_t end = UINT64_MAX;

		if (ds->kind == EXAMPLES_PART)
			end = s[p[i / ds->members].shard].bytes;
		if ((m[i].name && !text_at(names, m[i].name - 1)) ||
			m[i].offset > end || m[i].bytes > end - m[i].offset)
			return false;
	}
	return true;
}

/* Check all tables. There is no catalogue for raw records, because a scan of
 * them costs no more than mapping a catalogue. */
static bool check_tables(const struct dataset *ds)
{
	const struct array *examples = &ds->section[SECTION_EXAMPLES];
	size_t each = ds_example_bytes(ds->kind);

	if (each == 0 || array_bytes(examples) % each != 0 ||
		array_bytes(examples) / each != ds->count || ds->count == 0 ||
		!ends_with_nul(&ds->section[SECTION_TEXTS]) ||
		!ends_with_nul(&ds->section[SECTION_NAMES]))
		return false;
	return check_skipped(ds) && check_watches(ds) && check_shards(ds) &&
		check_classes(ds) &&
		(ds->kind == EXAMPLES_WHOLE ? check_wholes(ds)
					    : check_parts(ds)) &&
		check_members(ds);
}

static bool check_header(const struct catalogue_header *h,
	const struct catalogue_form *form, uint64_t bytes, struct hash128 key)
{
	uint64_t left;

	if (bytes < header_bytes(form))
		return false;
	left = bytes - header_bytes(form);
	if (memcmp(h->magic, CATALOGUE_MAGIC, sizeof(h->magic)) != 0 ||
		h->version != form->version || h->order != CATALOGUE_ORDER ||
		h->words[2 * form->sections] !=
			hash64(h, hashed_bytes(form), form->version) ||
		h->key.hi != key.hi || h->key.lo != key.lo ||
		h->kind >= EXAMPLES_RECORDS)
		return false;
	for (unsigned i = 0; i < form->sections; i++) {
		if (h->words[i] > left)
			return false;
		left -= h->words[i];
	}
	return left == 0;
}

/* -- Reading --------------------------------------------------------------- */

static bool take_sections(struct dataset *ds, const struct catalogue_header *h,
	const struct catalogue_form *form)
{
	/* The mapping is read-only. The pointers of the tables are not const,
	 * but nothing writes to a finished table. */
	char *at = (char *)ds->map + header_bytes(form);
	uint64_t before = 0;

	for (unsigned i = 0; i < form->sections; i++) {
		enum ds_section section = form->section[i];

		/* Sections begin at multiples of 8 bytes. So the size of each
		 * section must be one, except for the texts, which come
		 * last. */
		if (section <= SECTION_MEMBERS && h->words[i] % 8 != 0)
			return false;
		ds->section[section] = array_of(at + before, h->words[i]);
		before += h->words[i];
		if (hash64(array_data(&ds->section[section]), h->words[i], i) !=
			h->words[form->sections + i])
			return false;
	}
	return true;
}

static bool take_map(struct dataset *ds, struct hash128 key)
{
	const struct catalogue_header *h = ds->map;
	struct catalogue_form form = catalogue_form(!ds->members);

	if (!check_header(h, &form, ds->map_bytes, key))
		return false;
	ds->kind = (enum ds_kind)h->kind;
	ds->record_bytes = h->record_bytes;
	ds->label_bytes = h->label_bytes;
	ds->count = h->count;
	ds->links = h->links;
	ds->fingerprint = h->fingerprint;
	ds->skipped = h->skipped;
	return take_sections(ds, h, &form) && check_tables(ds);
}

static void unmap(struct dataset *ds)
{
	/* Cannot fail: this is the range that was mapped */
	(void)munmap(ds->map, ds->map_bytes);
	*ds = (struct dataset){
		.dir = ds->dir, .fs_type = ds->fs_type, .members = ds->members};
}

int ds_catalogue_map_file(
	int cache_fd, const char *name, void **out, size_t *bytes)
{
	CLEANUP_FD int fd = openat(
		cache_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_uid != geteuid() ||
		(st.st_mode & 022))
		return -EBADMSG;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ,
		MAP_SHARED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*out = map;
	*bytes = (size_t)st.st_size;
	return 0;
}

int ds_catalogue_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key)
{
	int rc =
		ds_catalogue_map_file(cache_fd, name, &ds->map, &ds->map_bytes);

	if (rc < 0)
		return rc;
	if (take_map(ds, key))
		return 0;
	unmap(ds);
	return -EBADMSG;
}

/* -- Is the catalogue still right? ----------------------------------------- */

struct freshness {
	const struct dataset *ds;
	_Atomic bool changed; /* relaxed; read after all workers have ended */
};

static int check_watch(struct look *l, void *arg, uint64_t i)
{
	struct freshness *f = arg;
	const struct ds_watch *w = array_data(&f->ds->section[SECTION_WATCHES]);
	const char *path =
		(const char *)array_data(&f->ds->section[SECTION_TEXTS]) +
		w[i].path;
	struct stat st;

	(void)l;
	if (atomic_load_explicit(&f->changed, memory_order_relaxed))
		return 0;
	if (fstatat(f->ds->dir, path, &st, 0) == 0 &&
		stat_mtime_ns(&st) == w[i].mtime_ns &&
		stat_fingerprint(&st) == w[i].fingerprint)
		return 0;
	atomic_store_explicit(&f->changed, true, memory_order_relaxed);
	return 0;
}

/* Are all files and directories that the dataset watches unchanged? */
static bool ds_catalogue_is_fresh(struct look *l, const struct dataset *ds)
{
	struct freshness f = {.ds = ds};
	uint64_t n = array_count(
		&ds->section[SECTION_WATCHES], sizeof(struct ds_watch));

	return look_each(l, n, check_watch, &f) == 0 &&
		!atomic_load_explicit(&f.changed, memory_order_relaxed);
}

/* Are all mtimes old enough to be trusted? An mtime of 0 is not trusted,
 * because file systems without mtimes return 0. */
static bool is_quiet(const struct look *l)
{
	const struct array *t = &l->ds->section[SECTION_WATCHES];
	const struct ds_watch *w = array_data(t);

	for (uint64_t i = 0; i < array_count(t, sizeof(*w)); i++)
		if (w[i].mtime_ns == 0 ||
			w[i].mtime_ns > l->start_ns - CATALOGUE_QUIET_NS)
			return false;
	return true;
}

int ds_catalogue_open(struct look *l)
{
	CLEANUP_FD int fd = l->cache_dir
		? ds_catalogue_open_dir(l->cache_dir, false)
		: -ENOENT;
	struct hash128 key = ds_catalogue_key(l);
	char name[CATALOGUE_NAME_MAX];
	int rc;

	if (fd < 0)
		return fd;
	ds_catalogue_name(key, name);
	rc = ds_catalogue_map(l->ds, fd, name, key);
	if (rc < 0)
		return rc;
	if (ds_catalogue_is_fresh(l, l->ds))
		return 0;
	unmap(l->ds);
	return -ESTALE;
}

void ds_catalogue_keep(struct look *l)
{
	CLEANUP_FD int fd = -1;
	struct hash128 key = ds_catalogue_key(l);
	char name[CATALOGUE_NAME_MAX];

	if (!l->cache_dir || l->ds->kind >= EXAMPLES_RECORDS || !is_quiet(l))
		return;
	fd = ds_catalogue_open_dir(l->cache_dir, true);
	if (fd < 0)
		return;
	ds_catalogue_name(key, name);
	(void)ds_catalogue_write(
		/* If this fails, the next process scans the dataset again */
		l->ds, fd, name, key);
}

/* SPDX-License-Identifier: MIT */
/*
 * Inside of the dataset: its tables, how a look fills them, and the threads of
 * a look. The *driver* is one thread that does all that can hang, so that the
 * caller of dataset_open() can leave it behind; it gives work to *workers*.
 */
#ifndef LOADER_DATASET_IMPL_H
#define LOADER_DATASET_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/pool.h"
#include "loader/dataset.h"

/* -- Tables: as they are in memory, so they are in the index file --------- */

/* What must be as it was for an index to be right. */
struct ds_watch {
	uint64_t path; /* in SECTION_TEXTS; absolute, or below the directory */
	int64_t mtime_ns;
	uint64_t fingerprint; /* stat_fingerprint() */
};

struct ds_shard {
	uint64_t file; /* in SECTION_TEXTS */
	uint64_t bytes;
	uint64_t first; /* RAW: number of its first record */
};

/* In the order of their labels. */
struct ds_class {
	uint64_t name; /* in SECTION_TEXTS, a NUL after its bytes */
	uint32_t bytes;
	uint32_t label;
};

struct ds_whole {
	uint64_t name;	/* in SECTION_NAMES */
	uint32_t bytes; /* or UINT32_MAX if more; 0: unknown */
	int32_t label;
};

struct ds_part {
	uint64_t name; /* in SECTION_NAMES */
	uint64_t offset, bytes;
	uint32_t shard;
	int32_t label;
};

enum ds_kind {
	EXAMPLES_WHOLE,	  /* struct ds_whole */
	EXAMPLES_PART,	  /* struct ds_part */
	EXAMPLES_RECORDS, /* no table: computed from the shards */
};

enum ds_section {
	SECTION_WATCHES,
	SECTION_SHARDS,
	SECTION_CLASSES,
	SECTION_EXAMPLES,
	SECTION_TEXTS,
	SECTION_NAMES, /* of the examples, in their order, a NUL after each */
	SECTIONS,
};

struct table {
	void *data; /* of malloc(), or in the map */
	uint64_t bytes, room;
};

struct dataset {
	int dir;
	uint32_t fs_type; /* of it */
	enum ds_kind kind;
	uint64_t count, links, fingerprint;
	uint32_t record_bytes, label_bytes;
	struct table section[SECTIONS];
	void *map; /* of an index; NULL: the tables are its own */
	size_t map_bytes;
};

/* Room for `bytes` more at the end: a pointer to it, or NULL. */
void *table_grow(struct table *t, size_t bytes);

/* A copy of the bytes and a NUL at the end; its offset, or -ENOMEM. */
int64_t table_text(struct table *t, const char *text, size_t bytes);

int ds_add_watch(struct dataset *ds, const char *path, int64_t mtime_ns,
	uint64_t fingerprint);
int ds_add_shard(struct dataset *ds, const char *file, uint64_t bytes);

/* Set the count and the fingerprint, and give back what is not needed. */
void ds_finish(struct dataset *ds);

size_t ds_example_bytes(enum ds_kind kind);

/* -- Labels ---------------------------------------------------------------- */

/* Texts of labels, each once, numbered as they came. Zero it to begin. */
struct labels {
	struct table text;
	struct table entry; /* struct label_entry */
	uint32_t *slot;	    /* hash table of numbers + 1 */
	uint32_t slots;
};

#define LABEL_MAX_BYTES 65535

/* Its number, or -ENOMEM. */
int32_t labels_add(struct labels *l, const char *text, size_t bytes);

/*
 * Make the classes, and in all examples turn numbers of texts into labels;
 * `numeric`: decimal texts are numbers, if all are. Releases the labels, also
 * when it fails.
 */
int labels_finish(struct labels *l, struct dataset *ds, bool numeric);
void labels_release(struct labels *l);

/* -- A look ---------------------------------------------------------------- */

struct look {
	/* Set once, by the caller. */
	char *path, *root;
	char *cache_dir; /* of index files; NULL: nowhere */
	int source;
	uint32_t record_bytes, label_bytes;
	bool any_file;
	unsigned threads;
	int64_t start_ns; /* CLOCK_REALTIME */

	/* The driver's alone. */
	struct pool *workers;	/* set once */
	char *real, *real_root; /* without symbolic links; set once */
	struct dataset *ds;

	_Atomic bool stop; /* relaxed: end soon */
	/* Relaxed: what has come from the storage, and what the driver is at,
	 * a string that stays; for whoever waits for it. */
	_Atomic uint64_t answers;
	const char *_Atomic doing;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* `pending` is 0, or `done` */
	unsigned pending;	/* lock: jobs of workers */
	bool done;		/* lock: the driver is through */
	bool abandoned;		/* lock: so the driver frees the look */
	int status;		/* lock: 0, or the first failure */
	struct error err;	/* lock: of it */
};

static inline bool look_stopped(const struct look *l)
{
	return atomic_load_explicit(&l->stop, memory_order_relaxed);
}

/* Something has come from the storage. Any thread. */
static inline void look_answered(struct look *l)
{
	(void)atomic_fetch_add_explicit(&l->answers, 1, memory_order_relaxed);
}

/* What comes now, after "while". Driver. */
static inline void look_doing(struct look *l, const char *what)
{
	look_answered(l);
	atomic_store_explicit(&l->doing, what, memory_order_relaxed);
}

/* Note the first failure, end the others soon; returns `code`. Any thread. */
int look_fail(struct look *l, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The workers, started when they are first asked for. Driver. */
int look_workers(struct look *l);

/* A job for the workers, which calls look_ended() as its last. */
void look_submit(struct look *l, struct pool_job *job);
void look_ended(struct look *l);

/* Until there is no job left; then what became of them. Driver. */
int look_wait(struct look *l);

/* fn(l, arg, i) for all i below n, by the workers in any order. Driver. */
typedef int look_fn(struct look *l, void *arg, uint64_t i);
int look_each(struct look *l, uint64_t n, look_fn *fn, void *arg);

enum look_type {
	LOOK_FILE,
	LOOK_DIR,
	LOOK_LINK, /* that leads nowhere */
};

/*
 * What is in a directory, without what is hidden and what is neither of the
 * above. Takes dir_fd. 0, -errno (the reading failed), or what fn() returned
 * that is not 0.
 */
typedef int list_fn(void *arg, const char *name, enum look_type type);
int look_list(struct look *l, int dir_fd, list_fn *fn, void *arg);

/* By its name, with or without a callback that decodes. */
bool look_is_image(const struct look *l, const char *name);

/* The regular files in the directory itself, with `suffix`, as shards in order;
 * sizes and mtimes follow with look_stat_shards(). */
int look_list_shards(struct look *l, const char *suffix);
int look_stat_shards(struct look *l);

struct stat;
int64_t stat_mtime_ns(const struct stat *st);
/* Of a file its size; a directory's inode and size, hashed, with the highest
 * bit set. */
uint64_t stat_fingerprint(const struct stat *st);

/* -- The sources: fill l->ds; its directory is open, and watched. --------- */

int look_folder(struct look *l);
int look_list_file(struct look *l);
int look_tar(struct look *l);
int look_raw(struct look *l);

/* -- The kept index (dataset_index.c) ------------------------------------- */

#define INDEX_NAME_MAX 64

/* What the dataset and its options are, as a key; and the file's name. */
struct hash128 ds_index_key(const struct look *l);
void ds_index_name(struct hash128 key, char name[INDEX_NAME_MAX]);

/*
 * Map a file of that key into *ds and check it, so that no access leaves it:
 * -ENOENT, -EBADMSG, or another -errno; then *ds is as before.
 */
int ds_index_map(
	struct dataset *ds, int cache_fd, const char *name, struct hash128 key);

/* Is everything that the dataset watches as it was? */
bool ds_index_is_fresh(struct look *l, const struct dataset *ds);

/* Both of these in the look's cache directory. -errno: look. */
int ds_index_open(struct look *l);
/* Write it, if it can be trusted. */
void ds_index_keep(struct look *l);

/* The user's own, or -errno; `make` it and its parent, if need be. */
int ds_index_open_dir(const char *path, bool make);
int ds_index_write(const struct dataset *ds, int cache_fd, const char *name,
	struct hash128 key);

#endif

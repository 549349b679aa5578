/* SPDX-License-Identifier: MIT */
/* The file of the catalogue of annotations: a header and the tables. It is used
 * as long as the annotated file is the same, and checked before it is used. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/write.h"
#include "loader/dataset/annotations_impl.h"
#include "loader/dataset/dataset_catalogue_impl.h"

#define ANN_MAGIC "refrannt"
#define ANN_VERSION 1u
#define ANN_ORDER 0x01020304u
/* If a file was changed less than this time ago, it may change again without a
 * new mtime. */
#define ANN_QUIET_NS ((int64_t)(2 * NS_PER_S))

struct ann_header {
	char magic[8];
	uint32_t version, order;
	struct hash128 key;
	struct ann_source source;
	uint64_t orphans, points;
	uint64_t bytes[ANN_SECTIONS];
	/* XXH3-64 of each section; the seed is its number */
	uint64_t hash[ANN_SECTIONS];
	/* XXH3-64 of the fields above; the seed is the version */
	uint64_t header_hash;
};

_Static_assert(sizeof(struct ann_header) == 160, "no holes");
_Static_assert(sizeof(struct ann_image) % 8 == 0 &&
		sizeof(struct box) % 8 == 0 &&
		sizeof(struct ann_class) % 8 == 0,
	"sections are aligned");

static uint64_t header_hash(const struct ann_header *h)
{
	return hash64(h, offsetof(struct ann_header, header_hash), ANN_VERSION);
}

static void ann_catalogue_name(
	struct hash128 key, char name[CATALOGUE_NAME_MAX])
{
	static const char head[] = "annotations-";

	memcpy(name, head, sizeof(head));
	*hash128_put(name + sizeof(head) - 1, key) = '\0';
}

/* -- Reading --------------------------------------------------------------- */

static bool check_texts(const struct annotations *a)
{
	const struct array *texts = &a->section[ANN_TEXTS];
	const struct array *t = &a->section[ANN_CLASSES];
	const struct ann_class *c = array_data(t);
	size_t bytes = array_bytes(texts);

	if (bytes == 0 || ((const char *)array_data(texts))[bytes - 1])
		return false;
	for (size_t i = 0; i < array_count(t, sizeof(*c)); i++)
		if (c[i].name >= bytes)
			return false;
	return true;
}

static bool check_images(const struct annotations *a)
{
	const struct array *t = &a->section[ANN_IMAGES];
	const struct ann_image *image = array_data(t);
	size_t texts = array_bytes(&a->section[ANN_TEXTS]);
	size_t boxes = array_count(&a->section[ANN_BOXES], sizeof(struct box));
	bool right = true;

	for (size_t i = 0; i < array_count(t, sizeof(*image)); i++)
		right &= (image[i].name < texts) & (image[i].first <= boxes) &
			(image[i].count <= boxes - image[i].first);
	return right &&
		array_bytes(&a->section[ANN_POINTS]) ==
		boxes * a->points * 3 * sizeof(float);
}

static bool check_ann_header(const struct ann_header *h, uint64_t bytes,
	struct hash128 key, const struct ann_source *source)
{
	uint64_t left = bytes - sizeof(*h);

	if (memcmp(h->magic, ANN_MAGIC, sizeof(h->magic)) != 0 ||
		h->version != ANN_VERSION || h->order != ANN_ORDER ||
		h->header_hash != header_hash(h) || h->key.hi != key.hi ||
		h->key.lo != key.lo || h->points > 64 ||
		memcmp(&h->source, source, sizeof(*source)) != 0)
		return false;
	for (unsigned i = 0; i < ANN_SECTIONS; i++) {
		if (h->bytes[i] > left)
			return false;
		left -= h->bytes[i];
	}
	return left == 0;
}

/* Set the addresses of the tables. They are aligned, because the sizes of all
 * sections are multiples of 8, except those of the last two: points (multiples
 * of 4) and texts. */
static bool take_tables(struct annotations *a, const struct ann_header *h)
{
	static const size_t each[ANN_SECTIONS] = {sizeof(struct ann_image),
		sizeof(struct box), sizeof(struct ann_class), sizeof(float), 1};
	/* The pointers are not const, but nothing writes to the tables. */
	char *at = (char *)a->map + sizeof(*h);

	for (unsigned i = 0; i < ANN_SECTIONS; i++) {
		if (h->bytes[i] % each[i] != 0 ||
			hash64(at, h->bytes[i], i) != h->hash[i])
			return false;
		a->section[i] = array_of(at, h->bytes[i]);
		at += h->bytes[i];
	}
	a->orphans = h->orphans;
	a->points = (uint32_t)h->points;
	return check_texts(a) && check_images(a);
}

int annotations_map(struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source)
{
	CLEANUP_FD int dir = ds_catalogue_open_dir(cache_dir, false);
	char name[CATALOGUE_NAME_MAX];
	const struct ann_header *h;
	int rc;

	if (dir < 0)
		return dir;
	ann_catalogue_name(key, name);
	rc = ds_catalogue_map_file(dir, name, &a->map, &a->map_bytes);
	if (rc < 0)
		return rc;
	h = a->map;
	if (a->map_bytes >= sizeof(*h) &&
		check_ann_header(h, a->map_bytes, key, source) &&
		take_tables(a, h))
		return 0;
	/* cannot fail: this is the range that was mapped */
	(void)munmap(a->map, a->map_bytes);
	*a = (struct annotations){.map = NULL};
	return -EBADMSG;
}

/* -- Writing --------------------------------------------------------------- */

static void fill_ann_header(const struct annotations *a, struct hash128 key,
	const struct ann_source *source, struct ann_header *h)
{
	*h = (struct ann_header){
		.version = ANN_VERSION,
		.order = ANN_ORDER,
		.key = key,
		.source = *source,
		.orphans = a->orphans,
		.points = a->points,
	};
	memcpy(h->magic, ANN_MAGIC, sizeof(h->magic));
	for (unsigned i = 0; i < ANN_SECTIONS; i++) {
		const struct array *t = &a->section[i];

		h->bytes[i] = array_bytes(t);
		h->hash[i] = hash64(
			array_data(t) ? array_data(t) : "", array_bytes(t), i);
	}
	h->header_hash = header_hash(h);
}

static int write_ann_catalogue(const struct annotations *a, int dir,
	const char *name, const struct ann_header *h)
{
	char new_name[CATALOGUE_NAME_MAX + 8];
	CLEANUP_FD int fd = -1;
	int rc;

	(void)snprintf(new_name, sizeof(new_name), "%s.new", name);
	fd = ds_catalogue_create(dir, new_name);
	if (fd < 0)
		return fd;
	rc = write_all(fd, h, sizeof(*h));
	for (unsigned i = 0; rc == 0 && i < ANN_SECTIONS; i++)
		rc = write_all(fd, array_data(&a->section[i]),
			array_bytes(&a->section[i]));
	if (rc == 0 && renameat(dir, new_name, dir, name) < 0)
		rc = -errno;
	if (rc < 0)
		/* If this fails, a later process removes it as a leftover */
		(void)unlinkat(dir, new_name, 0);
	return rc;
}

void annotations_keep(const struct annotations *a, const char *cache_dir,
	struct hash128 key, const struct ann_source *source)
{
	CLEANUP_FD int dir = -1;
	char name[CATALOGUE_NAME_MAX];
	struct ann_header h;
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	if (source->mtime_ns == 0 ||
		source->mtime_ns >
			clock_file_ns(now.tv_sec, now.tv_nsec) - ANN_QUIET_NS)
		return;
	dir = ds_catalogue_open_dir(cache_dir, true);
	if (dir < 0)
		return;
	ann_catalogue_name(key, name);
	fill_ann_header(a, key, source, &h);
	/* a failure is ignored: the next process parses again */
	(void)write_ann_catalogue(a, dir, name, &h);
}

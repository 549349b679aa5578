/* SPDX-License-Identifier: MIT */
/*
 * refrain make-dataset: generates a directory of JPEGs. Either each class has a
 * directory, and a classifier can learn the classes; or the pictures show
 * objects, with boxes and masks. tools/picture.c draws the pictures. The same
 * seed gives the same pictures with any number of threads. The threads draw
 * pictures by a common counter, and stop at the first failure.
 */
#include "make_dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "common/base/write.h"
#include "mask_png.h"
#include "objects.h"
#include "picture.h"

#define CLASSES_MAX 100000
#define IMAGES_MAX 99999999 /* names of files have eight digits */
/* limit for pictures of objects, whose objects are in memory */
#define OBJECT_IMAGES_MAX 1000000
#define SIDE_MAX 8192 /* a thread needs 200 MB for pixels of this side */
#define THREADS_MAX 64
#define NAME_MAX_BYTES 64 /* room for "class_00000/00000000.jpg" */

struct made_dataset {
	/* The options. Set before the threads start. */
	const char *dir;
	unsigned classes, images, threads, seed;
	/* 0: each picture has its own size, as photographs have */
	unsigned width, height;
	/* draw objects, and write their boxes, masks or YOLO files */
	bool boxes, masks, yolo;
	struct objects *objects; /* NULL: the pictures have classes */
	int dir_fd;
	int class_digits;

	_Atomic unsigned next;	/* number of the next picture; relaxed */
	_Atomic uint64_t bytes; /* bytes of all written files; relaxed */
	/* relaxed: it is read after the threads were joined */
	_Atomic bool failed;
	pthread_mutex_t mutex; /* protects the members below */
	struct error first;    /* error of the first failure */
};

static int make_dataset_parse_size(
	void *out, const char *value, struct error *err)
{
	struct made_dataset *d = out;
	char end;

	if (sscanf(value, "%5ux%5u%c", &d->width, &d->height, &end) != 2 ||
		!d->width || !d->height || d->width > SIDE_MAX ||
		d->height > SIDE_MAX)
		return error_set(err, -EINVAL,
			"'%s' is not a valid size; write WxH as in 500x375, "
			"each side at most %d",
			value, SIDE_MAX);
	return 0;
}

#define FIELD(f) offsetof(struct made_dataset, f)

static const struct option_def options[] = {
	{"classes", 'k', "K", "Number of classes; each gets a directory.",
		OPTION_NUMBER, FIELD(classes), NULL, true},
	{"images", 'n', "N", "Total number of images.", OPTION_NUMBER,
		FIELD(images), NULL, true},
	{"size", 's', "WxH",
		"Size of every image in pixels (default: sizes vary like "
		"those of photographs).",
		OPTION_CALL, 0, make_dataset_parse_size, false},
	{"boxes", 0, NULL,
		"Draw pictures of objects in images/, and write their boxes "
		"as COCO's JSON to instances.json. Classes are kinds of "
		"shapes, at most 6.",
		OPTION_FLAG, FIELD(boxes), NULL, false},
	{"masks", 0, NULL,
		"Draw pictures of objects in images/, and PNGs in masks/: 0 is "
		"the ground, and 1 the first class.",
		OPTION_FLAG, FIELD(masks), NULL, false},
	{"yolo", 0, NULL,
		"Draw pictures of objects in images/, and write their boxes "
		"as YOLO's lines to labels/.",
		OPTION_FLAG, FIELD(yolo), NULL, false},
	{"seed", 0, "S", "Seed for the images (default: 0).", OPTION_NUMBER,
		FIELD(seed), NULL, false},
	{"threads", 't', "T",
		"Number of threads that draw images (default: "
		"one per processor).",
		OPTION_NUMBER, FIELD(threads), NULL, false},
	{.name = NULL},
};

const struct option_usage make_dataset_usage = {
	.name = "make-dataset",
	.operands = "DIR",
	.summary = "Generate a dataset of JPEGs whose classes can be learned.",
	.options = options,
	.min_operands = 1,
	.max_operands = 1,
};

/* -- A thread -- */

struct painter {
	struct made_dataset *d;
	tjhandle jpeg;
	uint8_t *rgb;
	uint8_t *ids; /* part of the memory of rgb, after the pixels */
	unsigned char *file;
	size_t rgb_bytes;
	unsigned long file_bytes; /* size of the buffer `file` */
};

static void painter_release(struct painter *p)
{
	if (p->jpeg)
		(void)tjDestroy(p->jpeg); /* only frees memory */
	tjFree(p->file);
	free(p->rgb);
}

/* Allocate memory for the pixels of one picture and for the largest JPEG of it.
 */
static int painter_grow(struct painter *p, const struct picture_spec *spec)
{
	size_t need = (size_t)spec->width * spec->height * 4;

	if (need <= p->rgb_bytes)
		return 0;
	free(p->rgb);
	p->rgb = malloc(need);
	p->rgb_bytes = p->rgb ? need : 0;
	p->ids = p->rgb ? p->rgb + need / 4 * 3 : NULL;
	return p->rgb ? 0 : -ENOMEM;
}

static int painter_draw(struct painter *p, const struct picture_spec *spec)
{
	struct picture_object objects[PICTURE_OBJECTS_MAX];
	struct made_dataset *d = p->d;
	int n;

	if (!d->objects)
		return picture_draw(spec, p->rgb);
	n = picture_draw_objects(spec, d->classes, p->rgb, p->ids, objects);
	if (n < 0)
		return n;
	objects_note(
		d->objects, (unsigned)spec->index, spec, objects, (unsigned)n);
	return 0;
}

static int painter_paint(struct painter *p, const struct picture_spec *spec,
	unsigned long *bytes)
{
	unsigned long most =
		tjBufSize((int)spec->width, (int)spec->height, TJSAMP_420);
	int rc = painter_grow(p, spec);

	if (rc < 0)
		return rc;
	if (most > p->file_bytes) {
		tjFree(p->file);
		p->file_bytes = 0;
		p->file = tjAlloc((int)most);
		if (!p->file)
			return -ENOMEM;
		p->file_bytes = most;
	}
	rc = painter_draw(p, spec);
	if (rc < 0)
		return rc;
	*bytes = p->file_bytes;
	/* The accurate DCT gives the same result on every machine. */
	if (tjCompress2(p->jpeg, p->rgb, (int)spec->width, 0, (int)spec->height,
		    TJPF_RGB, &p->file, bytes, TJSAMP_420, (int)spec->quality,
		    TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT) < 0)
		return -EIO;
	return 0;
}

static int make_dataset_write_file(
	int dir_fd, const char *name, const unsigned char *data, size_t bytes)
{
	CLEANUP_FD int fd = openat(
		dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, data, bytes);
	if (rc == 0 && close(steal_fd(&fd)) < 0)
		rc = -errno;
	if (rc < 0)
		/* do not leave an incomplete file */
		(void)unlinkat(dir_fd, name, 0);
	return rc;
}

static void class_name(
	const struct made_dataset *d, unsigned class, char name[NAME_MAX_BYTES])
{
	(void)snprintf(name, NAME_MAX_BYTES, "class_%0*u", d->class_digits,
		class); /* always fits: see CLASSES_MAX */
}

/* Write boxes, masks and YOLO lines of the objects of picture i. */
static int write_truth(
	struct painter *p, unsigned i, const struct picture_spec *spec)
{
	struct made_dataset *d = p->d;
	char name[NAME_MAX_BYTES], text[OBJECTS_YOLO_MAX];
	CLEANUP_FREE uint8_t *png = NULL;
	size_t bytes;
	int rc = 0;

	(void)snprintf(name, sizeof(name), "labels/%08u.txt", i + 1);
	bytes = objects_yolo(d->objects, i, text);
	if (d->yolo)
		rc = make_dataset_write_file(
			d->dir_fd, name, (const unsigned char *)text, bytes);
	if (rc < 0 || !d->masks)
		return rc;
	(void)snprintf(name, sizeof(name), "masks/%08u.png", i + 1);
	png = mask_png(p->ids, spec->width, spec->height, &bytes);
	return png ? make_dataset_write_file(d->dir_fd, name, png, bytes)
		   : -ENOMEM;
}

/* Draw picture i and write its file. Consecutive pictures have consecutive
 * classes, so the counts of classes differ by at most one. */
static int make_one(struct painter *p, unsigned i)
{
	struct made_dataset *d = p->d;
	struct picture_spec spec = picture_spec(d->seed, i, i % d->classes);
	char class[NAME_MAX_BYTES], name[2 * NAME_MAX_BYTES];
	unsigned long bytes = 0;
	int rc;

	if (d->width) {
		spec.width = d->width;
		spec.height = d->height;
	}
	class_name(d, spec.class, class);
	(void)snprintf(name, sizeof(name), "%s/%08u.jpg",
		d->objects ? "images" : class,
		/* always fits: see IMAGES_MAX */
		d->objects ? i + 1 : i / d->classes + 1);
	rc = painter_paint(p, &spec, &bytes);
	if (rc == 0)
		rc = make_dataset_write_file(d->dir_fd, name, p->file, bytes);
	if (rc == 0 && d->objects)
		rc = write_truth(p, i, &spec);
	if (rc == 0) {
		(void)atomic_fetch_add_explicit(
			&d->bytes, bytes, memory_order_relaxed);
		return 0;
	}
	LOCK_SCOPE(&d->mutex);
	if (!atomic_exchange(&d->failed, true))
		return error_set(&d->first, rc,
			"cannot create '%s/%s': %m; the images created so far "
			"remain",
			d->dir, name);
	return rc;
}

static void *painter_run(void *arg)
{
	struct painter p = {.d = arg, .jpeg = tjInitCompress()};
	struct made_dataset *d = arg;

	while (p.jpeg && !atomic_load(&d->failed)) {
		unsigned i = atomic_fetch_add_explicit(
			&d->next, 1, memory_order_relaxed);

		if (i >= d->images || make_one(&p, i) < 0)
			break;
	}
	painter_release(&p);
	return NULL;
}

/* -- All threads -- */

static int start_and_join(struct made_dataset *d, struct error *err)
{
	pthread_t threads[THREADS_MAX];
	unsigned n = 0;
	int rc = 0;

	for (; n < d->threads && rc == 0; n++)
		rc = -pthread_create(&threads[n], NULL, painter_run, d);
	if (rc < 0)
		/* the last thread could not be started; the others do its work
		 */
		n--;
	for (unsigned i = 0; i < n; i++)
		/* cannot fail: the thread is joinable */
		(void)pthread_join(threads[i], NULL);
	if (atomic_load(&d->failed)) {
		*err = d->first;
		return -EIO;
	}
	if (atomic_load(&d->next) < d->images)
		return error_set(err, -ENOMEM, "cannot start threads: %m");
	return 0;
}

static int make_dir_in(
	const struct made_dataset *d, const char *name, struct error *err)
{
	if (mkdirat(d->dir_fd, name, 0755) == 0)
		return 0;
	return error_set(
		err, -errno, "cannot create '%s/%s': %m", d->dir, name);
}

static int make_dataset_make_dirs(
	const struct made_dataset *d, struct error *err)
{
	char name[NAME_MAX_BYTES];
	int rc = 0;

	if (d->objects)
		rc = make_dir_in(d, "images", err);
	if (rc == 0 && d->masks)
		rc = make_dir_in(d, "masks", err);
	if (rc == 0 && d->yolo)
		rc = make_dir_in(d, "labels", err);
	for (unsigned c = 0; rc == 0 && !d->objects && c < d->classes; c++) {
		class_name(d, c, name);
		rc = make_dir_in(d, name, err);
	}
	return rc;
}

/* Open the directory, which is created if it is missing. It must be empty, so
 * that no file is overwritten. */
static int open_empty_dir(struct made_dataset *d, struct error *err)
{
	CLEANUP_DIR DIR *dir = NULL;
	struct dirent *e;

	if (mkdir(d->dir, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "cannot create '%s': %m", d->dir);
	dir = opendir(d->dir);
	if (!dir)
		return error_set(err, -errno, "cannot open '%s': %m", d->dir);
	while ((e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return error_set(err, -ENOTEMPTY,
				"'%s' is not empty; give an empty directory "
				"or one that does not exist",
				d->dir);
	d->dir_fd = fcntl(dirfd(dir), F_DUPFD_CLOEXEC, 0);
	return d->dir_fd < 0 ? -errno : 0;
}

static int make_dataset_check_numbers(struct made_dataset *d, struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!d->classes || d->classes > CLASSES_MAX)
		return error_set(err, -EINVAL,
			"make-dataset: --classes must be 1 to %d", CLASSES_MAX);
	if (d->images < d->classes || d->images > IMAGES_MAX)
		return error_set(err, -EINVAL,
			"make-dataset: --images must be at least the number of "
			"classes (%u) "
			"and at most %d",
			d->classes, IMAGES_MAX);
	if (d->boxes || d->masks || d->yolo) {
		if (d->classes > PICTURE_KINDS || d->images > OBJECT_IMAGES_MAX)
			return error_set(err, -EINVAL,
				"make-dataset: with objects, --classes must be "
				"at most %d and --images at most %d",
				PICTURE_KINDS, OBJECT_IMAGES_MAX);
		d->objects = objects_new(d->images);
		if (!d->objects)
			return error_set(err, -ENOMEM, "%m");
	}
	if (!d->threads)
		d->threads = cpus < 1 ? 1 : (unsigned)cpus;
	if (d->threads > THREADS_MAX)
		d->threads = THREADS_MAX;
	d->class_digits = snprintf(NULL, 0, "%u", d->classes - 1);
	if (d->class_digits < 3)
		d->class_digits = 3;
	return 0;
}

static int make_dataset(struct made_dataset *d, struct error *err)
{
	char size[SIZE_TEXT_MAX];
	int rc = open_empty_dir(d, err);

	if (rc == 0)
		rc = make_dataset_make_dirs(d, err);
	if (rc == 0)
		rc = start_and_join(d, err);
	if (rc == 0 && d->boxes)
		rc = objects_write(d->objects, d->dir_fd, d->classes);
	if (rc < 0)
		return *err->msg ? rc
				 : error_set(err, rc,
					   "cannot write "
					   "'%s/instances.json': %m",
					   d->dir);
	printf("%u image%s of %u class%s, %s, in ", d->images,
		d->images == 1 ? "" : "s", d->classes,
		d->classes == 1 ? "" : "es",
		size_format(atomic_load(&d->bytes), size));
	escape_print(stdout, d->dir);
	(void)putchar('\n');
	return 0;
}

int cmd_make_dataset(int argc, char **argv)
{
	struct made_dataset d = {
		.dir_fd = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
	struct error err = {""};
	int rc = option_parse(&make_dataset_usage, argc, argv, &d, &err);

	if (rc == -ECANCELED) {
		option_print_help(&make_dataset_usage, stdout);
		return 0;
	}
	if (rc >= 0) {
		d.dir = argv[1];
		rc = make_dataset_check_numbers(&d, &err);
	}
	if (rc < 0) {
		fprintf(stderr, "refrain: %s\n", err.msg);
		return 2;
	}
	rc = make_dataset(&d, &err);
	objects_free(d.objects);
	if (d.dir_fd >= 0)
		(void)close(d.dir_fd); /* loses no data: it is a directory */
	if (rc < 0)
		fprintf(stderr, "refrain: %s\n", err.msg);
	return rc < 0 ? 1 : 0;
}

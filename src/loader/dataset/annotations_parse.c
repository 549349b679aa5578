/* SPDX-License-Identifier: MIT */
/* Parses a file in COCO's format. Images, annotations and categories may come
 * in any order, so the rows are collected first, and then sorted by their
 * images. One thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/dataset/annotations_impl.h"
#include "loader/dataset/json_file_impl.h"
#include "loader/dataset/rows.h"

#define NAME_BYTES_MAX 4096
#define CLASSES_MAX 65536u
#define NUMBER_NONE UINT32_MAX

/* An image, before the images are sorted. */
struct found_image {
	uint64_t id;
	/* until then, image.first is the index of the image in the file */
	struct ann_image image;
};

/* A row, before the rows are sorted. Its label is not set. */
struct found_row {
	uint64_t image_id, category;
	struct box box;
};

struct ann_parse {
	struct annotations *a;
	struct json_file file;
	struct array images; /* array of struct found_image */
	struct array rows;   /* array of struct found_row */
	struct array points; /* array of float: the points of each row */
	uint32_t row_points;
	bool has_images, has_rows, has_classes;
};

typedef int ann_element_fn(struct ann_parse *p, struct json_scan *s);

static int no_memory(struct ann_parse *p)
{
	return error_set(p->file.err, -ENOMEM, "%m");
}

static int malformed(struct ann_parse *p, const char *what)
{
	return json_file_fail(
		&p->file, -EBADMSG, "malformed JSON before this, in %s", what);
}

/* Add a text. Returns its offset, or -ENOMEM or -E2BIG with a message. */
static int64_t add_ann_text(struct ann_parse *p, const char *text)
{
	struct array *texts = &p->a->section[ANN_TEXTS];
	int64_t at = array_text(texts, text, strlen(text));

	if (at < 0)
		return no_memory(p);
	if (at > UINT32_MAX)
		return json_file_fail(
			&p->file, -E2BIG, "names of more than 4 GiB");
	return at;
}

/* -- Elements -------------------------------------------------------------- */

struct image_object {
	uint64_t id, width, height;
	bool has_id;
	char name[NAME_BYTES_MAX];
};

static bool image_member(struct json_scan *s, const char *name, void *arg)
{
	struct image_object *o = arg;

	if (strcmp(name, "id") == 0)
		return o->has_id = json_take_number(s, &o->id);
	if (strcmp(name, "file_name") == 0)
		return json_take_text(s, o->name, sizeof(o->name));
	if (strcmp(name, "width") == 0 && json_take_number(s, &o->width))
		return true;
	if (strcmp(name, "height") == 0 && json_take_number(s, &o->height))
		return true;
	return json_skip(s);
}

static int add_image(struct ann_parse *p, struct json_scan *s)
{
	struct image_object o = {.id = 0};
	struct found_image *f;
	int64_t name;

	if (!json_take_object(s, image_member, &o))
		return malformed(p, "an image");
	if (!o.has_id || !*o.name)
		return json_file_fail(&p->file, -EBADMSG,
			"the image before this has no %s",
			o.has_id ? "file_name" : "id");
	name = add_ann_text(p, o.name);
	if (name < 0)
		return (int)name;
	f = array_grow(&p->images, sizeof(*f));
	if (!f)
		return no_memory(p);
	*f = (struct found_image){.id = o.id};
	f->image.first = array_count(&p->images, sizeof(*f));
	f->image.name = (uint32_t)name;
	f->image.width = o.width <= UINT32_MAX ? (uint32_t)o.width : 0;
	f->image.height = o.height <= UINT32_MAX ? (uint32_t)o.height : 0;
	return 0;
}

static int add_points(struct ann_parse *p, const struct row_object *o)
{
	size_t bytes = 3 * (size_t)o->points * sizeof(float);
	void *to;

	if (array_bytes(&p->rows) == 0)
		p->row_points = o->points;
	if (o->points != p->row_points)
		return json_file_fail(&p->file, -EBADMSG,
			"the annotation before this (id %llu) has %u "
			"keypoints, but others have %u",
			(unsigned long long)o->id, o->points, p->row_points);
	to = bytes ? array_grow(&p->points, bytes) : NULL;
	if (bytes && !to)
		return no_memory(p);
	if (to)
		memcpy(to, o->point, bytes);
	return 0;
}

static int add_annotation(struct ann_parse *p, struct json_scan *s)
{
	struct row_object o;
	struct found_row *row;
	const char *why;
	int rc;

	if (!row_take(s, &o))
		return malformed(p, "an annotation");
	why = row_finish(&o);
	if (!why && !o.has_image)
		why = "it has no image_id";
	if (why)
		return json_file_fail(&p->file, -EBADMSG,
			"the annotation before this (id %llu): %s",
			(unsigned long long)o.id, why);
	rc = add_points(p, &o);
	if (rc < 0)
		return rc;
	row = array_grow(&p->rows, sizeof(*row));
	if (!row)
		return no_memory(p);
	*row = (struct found_row){o.image_id, o.category, o.box};
	return 0;
}

static bool class_member(struct json_scan *s, const char *name, void *arg)
{
	struct image_object *o = arg;

	if (strcmp(name, "id") == 0)
		return o->has_id = json_take_number(s, &o->id);
	if (strcmp(name, "name") == 0)
		return json_take_text(s, o->name, sizeof(o->name));
	return json_skip(s);
}

static int add_category(struct ann_parse *p, struct json_scan *s)
{
	struct array *t = &p->a->section[ANN_CLASSES];
	struct image_object o = {.id = 0};
	struct ann_class *c;
	int64_t name;

	if (!json_take_object(s, class_member, &o) || !o.has_id)
		return malformed(p, "a category");
	if (array_count(t, sizeof(*c)) == CLASSES_MAX)
		return json_file_fail(
			&p->file, -E2BIG, "more than 65536 categories");
	name = add_ann_text(p, o.name);
	c = name < 0 ? NULL : array_grow(t, sizeof(*c));
	if (!c)
		return name < 0 ? (int)name : no_memory(p);
	*c = (struct ann_class){.id = o.id, .name = (uint32_t)name};
	return 0;
}

/* -- The file -------------------------------------------------------------- */

static int take_elements(struct ann_parse *p, bool *seen, ann_element_fn *fn)
{
	int rc = json_file_take(&p->file, '[');

	if (rc == 0 || *seen)
		return json_file_fail(&p->file, -EBADMSG,
			rc == 0 ? "not an array"
				: "a second array of the same name");
	*seen = true;
	if (rc > 0)
		rc = json_file_take(&p->file, ']');
	if (rc != 0)
		return rc < 0 ? rc : 0;
	do {
		struct json_scan s;

		rc = json_file_value(&p->file, &s);
		if (rc == 0)
			rc = fn(p, &s);
		if (rc < 0)
			return rc;
		rc = json_file_take(&p->file, ',');
	} while (rc > 0);
	if (rc == 0)
		rc = json_file_take(&p->file, ']');
	return rc == 0 ? malformed(p, "an array") : rc < 0 ? rc : 0;
}

static int take_coco_member(struct ann_parse *p)
{
	char name[JSON_NAME_MAX];
	struct json_scan s;
	int rc = json_file_value(&p->file, &s);

	if (rc == 0 && !json_take_text(&s, name, sizeof(name)))
		rc = malformed(p, "the object");
	if (rc < 0)
		return rc;
	rc = json_file_take(&p->file, ':');
	if (rc <= 0)
		return rc < 0 ? rc : malformed(p, "the object");
	if (strcmp(name, "images") == 0)
		return take_elements(p, &p->has_images, add_image);
	if (strcmp(name, "annotations") == 0)
		return take_elements(p, &p->has_rows, add_annotation);
	if (strcmp(name, "categories") == 0)
		return take_elements(p, &p->has_classes, add_category);
	return json_file_value(&p->file, NULL);
}

static int take_coco(struct ann_parse *p)
{
	int rc = json_file_take(&p->file, '{');

	if (rc == 0)
		return json_file_fail(&p->file, -EBADMSG,
			"not COCO's JSON: it does not begin with {");
	while (rc > 0) {
		rc = take_coco_member(p);
		if (rc == 0)
			rc = json_file_take(&p->file, ',');
	}
	if (rc == 0)
		rc = json_file_take(&p->file, '}');
	if (rc > 0)
		rc = json_file_is_over(&p->file);
	if (rc <= 0)
		return rc < 0 ? rc : malformed(p, "the object");
	if (p->has_images && p->has_rows && p->has_classes)
		return 0;
	return json_file_fail(&p->file, -EBADMSG,
		"not COCO's JSON: it has no array \"%s\"",
		!p->has_images	       ? "images"
			: !p->has_rows ? "annotations"
				       : "categories");
}

/* -- Sorting --------------------------------------------------------------- */

static int by_class_id(const void *a, const void *b)
{
	const struct ann_class *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int by_image_id(const void *a, const void *b)
{
	const struct found_image *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int by_image_name(const void *a, const void *b, void *texts)
{
	const struct found_image *x = a, *y = b;

	return strcmp((const char *)texts + x->image.name,
		(const char *)texts + y->image.name);
}

static void sort(
	struct array *t, size_t each, int (*order)(const void *, const void *))
{
	if (array_bytes(t) > 0)
		qsort(array_data(t), array_count(t, each), each, order);
}

static uint32_t label_of_category(const struct annotations *a, uint64_t id)
{
	const struct array *t = &a->section[ANN_CLASSES];
	const struct ann_class key = {.id = id}, *first = array_data(t), *c;

	c = first ? bsearch(&key, first, array_count(t, sizeof(*c)), sizeof(*c),
			    by_class_id)
		  : NULL;
	return c ? (uint32_t)(c - first) : NUMBER_NONE;
}

/* The number of an image in the table; sorted by the image's id. */
struct image_number {
	uint64_t id;
	uint32_t number;
};

static int by_number_id(const void *a, const void *b)
{
	const struct image_number *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int check_unique(struct ann_parse *p)
{
	const struct found_image *f = array_data(&p->images);
	const struct ann_class *c = array_data(&p->a->section[ANN_CLASSES]);
	size_t n = array_count(&p->images, sizeof(*f));
	size_t classes = array_count(&p->a->section[ANN_CLASSES], sizeof(*c));

	if (n == 0)
		return error_set(p->file.err, -EBADMSG, "'%s' has no images",
			p->file.path);
	for (size_t i = 1; i < n; i++)
		if (f[i].id == f[i - 1].id)
			return error_set(p->file.err, -EBADMSG,
				"'%s': two images have the id %llu",
				p->file.path, (unsigned long long)f[i].id);
	for (size_t i = 1; i < classes; i++)
		if (c[i].id == c[i - 1].id)
			return error_set(p->file.err, -EBADMSG,
				"'%s': two categories have the id %llu",
				p->file.path, (unsigned long long)c[i].id);
	return 0;
}

/* Write the table of images, sorted by name. *numbers gets their numbers,
 * sorted by id; the caller frees it. */
static int place_images(struct ann_parse *p, struct image_number **numbers)
{
	struct found_image *f = array_data(&p->images);
	size_t n = array_count(&p->images, sizeof(*f));
	char *texts = array_data(&p->a->section[ANN_TEXTS]);
	struct ann_image *to = array_grow(
		&p->a->section[ANN_IMAGES], n * sizeof(struct ann_image));

	*numbers = malloc(n * sizeof(**numbers));
	if (!to || !*numbers)
		return no_memory(p);
	qsort_r(f, n, sizeof(*f), by_image_name, texts);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && by_image_name(&f[i - 1], &f[i], texts) == 0)
			return error_set(p->file.err, -EBADMSG,
				"'%s': two images have the file_name '%s'",
				p->file.path, texts + f[i].image.name);
		to[i] = f[i].image;
		to[i].first = 0;
		(*numbers)[i] = (struct image_number){f[i].id, (uint32_t)i};
	}
	qsort(*numbers, n, sizeof(**numbers), by_number_id);
	return 0;
}

/* Set the label of each row, replace the id of its image by the number of the
 * image, and count the rows of each image. */
static int number_rows(struct ann_parse *p, const struct image_number *numbers)
{
	struct found_row *r = array_data(&p->rows);
	struct ann_image *image = array_data(&p->a->section[ANN_IMAGES]);
	size_t images = array_count(&p->images, sizeof(struct found_image));
	size_t n = array_count(&p->rows, sizeof(*r));

	for (size_t i = 0; i < n; i++) {
		const struct image_number key = {.id = r[i].image_id}, *found;
		uint32_t label = label_of_category(p->a, r[i].category);

		if (label == NUMBER_NONE)
			return error_set(p->file.err, -EBADMSG,
				"'%s': an annotation has the category_id %llu, "
				"which is not among the categories",
				p->file.path,
				(unsigned long long)r[i].category);
		r[i].box.label = (int32_t)label;
		found = bsearch(
			&key, numbers, images, sizeof(*numbers), by_number_id);
		r[i].image_id = found ? found->number : UINT64_MAX;
		p->a->orphans += !found;
		if (!found)
			continue;
		if (++image[found->number].count > ROWS_MAX)
			return error_set(p->file.err, -E2BIG,
				"'%s': an image has more than 65536 "
				"annotations",
				p->file.path);
	}
	return 0;
}

/* Copy the rows of each image to its part of the table. Rows of an image stay
 * in the order of the file. */
static int place_rows(struct ann_parse *p)
{
	const struct found_row *r = array_data(&p->rows);
	const float *points = array_data(&p->points);
	struct ann_image *image = array_data(&p->a->section[ANN_IMAGES]);
	size_t images = array_count(&p->images, sizeof(struct found_image));
	size_t n = array_count(&p->rows, sizeof(*r)), at = 0;
	size_t each = 3 * (size_t)p->row_points;
	size_t kept = n - p->a->orphans;
	struct box *box = kept
		? array_grow(&p->a->section[ANN_BOXES], kept * sizeof(*box))
		: NULL;
	float *to = kept && each ? array_grow(&p->a->section[ANN_POINTS],
					   kept * each * sizeof(*to))
				 : NULL;

	if (kept && (!box || (each && !to)))
		return no_memory(p);
	for (size_t i = 0; i < images; i++) {
		image[i].first = at;
		at += image[i].count;
		image[i].count = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct ann_image *of;

		if (r[i].image_id == UINT64_MAX)
			continue;
		of = &image[r[i].image_id];
		at = of->first + of->count++;
		box[at] = r[i].box;
		if (to)
			memcpy(to + at * each, points + i * each,
				each * sizeof(*to));
	}
	return 0;
}

static int sort_all(struct ann_parse *p)
{
	struct image_number *numbers = NULL;
	int rc;

	sort(&p->images, sizeof(struct found_image), by_image_id);
	sort(&p->a->section[ANN_CLASSES], sizeof(struct ann_class),
		by_class_id);
	rc = check_unique(p);
	if (rc == 0)
		rc = place_images(p, &numbers);
	if (rc == 0)
		rc = number_rows(p, numbers);
	free(numbers);
	if (rc == 0)
		rc = place_rows(p);
	p->a->points = p->row_points;
	return rc;
}

int annotations_parse(
	struct annotations *a, int fd, const char *path, struct error *err)
{
	struct ann_parse p = {.a = a};
	int rc;

	json_file_init(&p.file, fd, path, err);
	rc = take_coco(&p);
	if (rc == 0)
		rc = sort_all(&p);
	json_file_release(&p.file);
	array_release(&p.images);
	array_release(&p.rows);
	array_release(&p.points);
	for (unsigned i = 0; i < ANN_SECTIONS; i++)
		array_trim(&a->section[i]);
	return rc;
}

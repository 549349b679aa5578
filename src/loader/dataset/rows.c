/* SPDX-License-Identifier: MIT */
/* Parses the rows of an example; see rows.h. */
#include "loader/dataset/rows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/real.h"

void rows_memory_release(struct rows *r)
{
	array_release(&r->boxes);
	array_release(&r->points);
}

size_t rows_memory_bytes(const struct rows *r)
{
	return array_room_bytes(&r->boxes) + array_room_bytes(&r->points);
}

uint32_t rows_count(const struct rows *r)
{
	return (uint32_t)array_count(&r->boxes, sizeof(struct box));
}

size_t rows_bytes(const struct rows *r)
{
	return array_bytes(&r->boxes) + array_bytes(&r->points);
}

static void clear(struct rows *r)
{
	r->boxes.bytes = 0;
	r->points.bytes = 0;
	r->row_points = 0;
}

/* Append a row. Returns 0, -E2BIG, -EBADMSG or -ENOMEM. *why says what is wrong
 * with the row, or is NULL. */
static int append_row(
	struct rows *r, const struct row_object *o, const char **why)
{
	size_t bytes = 3 * (size_t)o->points * sizeof(float);
	void *box, *points;

	*why = NULL;
	if (rows_count(r) == ROWS_MAX) {
		*why = "more than 65536 rows";
		return -E2BIG;
	}
	if (rows_count(r) > 0 && o->points != r->row_points) {
		*why = "rows have different numbers of points";
		return -EBADMSG;
	}
	if (r->most_bytes &&
		rows_bytes(r) + sizeof(o->box) + bytes > r->most_bytes) {
		*why = "its rows take too much of the loader's memory";
		return -E2BIG;
	}
	r->row_points = o->points;
	box = array_grow(&r->boxes, sizeof(o->box));
	points = bytes ? array_grow(&r->points, bytes) : NULL;
	if (!box || (bytes && !points))
		return -ENOMEM;
	memcpy(box, &o->box, sizeof(o->box));
	if (points)
		memcpy(points, o->point, bytes);
	return 0;
}

/* -- JSON ------------------------------------------------------------------ */

struct reals {
	float *to;
	uint32_t count, most;
};

static bool take_real_into(struct json_scan *s, void *arg)
{
	struct reals *r = arg;
	double v;

	if (!json_take_real(s, &v) || r->count == r->most)
		return false;
	r->to[r->count++] = (float)v;
	return true;
}

/* Take 0, 1, false or true. Any other number but 0 counts as 1. */
static bool take_crowd(struct json_scan *s, struct box *box)
{
	uint64_t number = 0;
	bool crowd = false;

	if (json_take_number(s, &number)) {
		if (number == UINT64_MAX) /* the number is a fraction */
			return false;
		crowd = number > 0;
	} else if (!json_take_bool(s, &crowd)) {
		return false;
	}
	box->flags = crowd ? BOX_CROWD : 0;
	return true;
}

static bool row_member(struct json_scan *s, const char *name, void *arg)
{
	struct row_object *o = arg;
	struct reals box = {&o->box.x0, 0, 4};
	struct reals points = {o->point, 0, 3 * ROW_POINTS_MAX};

	if (strcmp(name, "bbox") == 0) {
		o->has_box = json_take_array(s, take_real_into, &box);
		return o->has_box && box.count == 4;
	}
	if (strcmp(name, "category_id") == 0 || strcmp(name, "label") == 0)
		return o->has_category = json_take_number(s, &o->category);
	if (strcmp(name, "image_id") == 0)
		return o->has_image = json_take_number(s, &o->image_id);
	if (strcmp(name, "id") == 0 && json_take_number(s, &o->id))
		return o->has_id = true;
	if (strcmp(name, "iscrowd") == 0)
		return take_crowd(s, &o->box);
	if (strcmp(name, "keypoints") == 0) {
		if (!json_take_array(s, take_real_into, &points) ||
			points.count % 3)
			return false;
		o->points = points.count / 3;
		return true;
	}
	return json_skip(s);
}

bool row_take(struct json_scan *s, struct row_object *out)
{
	/* Do not clear the points: there are none yet, because their number is
	 * set to 0. */
	memset(out, 0, offsetof(struct row_object, point));
	return json_take_object(s, row_member, out);
}

const char *row_finish(struct row_object *o)
{
	struct box *b = &o->box;

	if (!o->has_box)
		return "it has no bbox";
	if (!o->has_category || o->category > INT32_MAX)
		return "it has no number of a class";
	if (!(b->x1 >= 0 && b->y1 >= 0) || !isfinite(b->x0) ||
		!isfinite(b->y0) || !isfinite(b->x1) || !isfinite(b->y1))
		return "its bbox is not [x, y, width, height]";
	b->x1 = (float)((double)b->x0 + b->x1);
	b->y1 = (float)((double)b->y0 + b->y1);
	b->label = (int32_t)o->category;
	return NULL;
}

struct row_parse {
	struct rows *rows;
	const char *why;
	int rc;
	/* the object has had an array of rows; that array is "boxes" */
	bool has_rows, has_boxes;
	bool has_labels;
	uint32_t labels;
};

static bool add_object(struct json_scan *s, void *arg)
{
	struct row_parse *p = arg;
	struct row_object o;

	if (!row_take(s, &o))
		return false;
	p->why = row_finish(&o);
	p->rc = p->why ? -EBADMSG : append_row(p->rows, &o, &p->why);
	return p->rc == 0;
}

static bool add_corners(struct json_scan *s, void *arg)
{
	struct row_parse *p = arg;
	struct row_object o = {.points = 0};
	struct box *b = &o.box;
	struct reals reals = {&b->x0, 0, 4};

	if (!json_take_array(s, take_real_into, &reals) || reals.count != 4)
		return false;
	b->label = -1;
	if (!(b->x1 >= b->x0 && b->y1 >= b->y0) || !isfinite(b->x0) ||
		!isfinite(b->y0) || !isfinite(b->x1) || !isfinite(b->y1)) {
		p->why = "a box is not [x0, y0, x1, y1]";
		p->rc = -EBADMSG;
		return false;
	}
	p->rc = append_row(p->rows, &o, &p->why);
	return p->rc == 0;
}

/* Take the label of the next box. "boxes" must come before "labels". */
static bool add_label(struct json_scan *s, void *arg)
{
	struct row_parse *p = arg;
	struct box *b = array_data(&p->rows->boxes);
	uint64_t label;

	if (!json_take_number(s, &label) || label > INT32_MAX)
		return false;
	if (p->labels == rows_count(p->rows)) {
		p->why = "labels has more elements than boxes, or comes before "
			 "it";
		p->rc = -EBADMSG;
		return false;
	}
	b[p->labels++].label = (int32_t)label;
	return true;
}

/* Note that an array of rows begins. An object has only one. */
static bool begin_rows(struct row_parse *p)
{
	if (p->has_rows) {
		p->why = "it has more than one of annotations, objects and "
			 "boxes";
		p->rc = -EBADMSG;
		return false;
	}
	return p->has_rows = true;
}

static const char *check_object(const struct row_parse *p)
{
	if (!p->has_rows)
		return "it has none of annotations, objects and boxes";
	if (p->has_labels && !p->has_boxes)
		return "it has labels, but no boxes";
	if (p->has_boxes && p->labels != rows_count(p->rows))
		return "labels has fewer elements than boxes";
	return NULL;
}

static bool rows_member(struct json_scan *s, const char *name, void *arg)
{
	struct row_parse *p = arg;

	if (strcmp(name, "annotations") == 0 || strcmp(name, "objects") == 0)
		return begin_rows(p) && json_take_array(s, add_object, p);
	if (strcmp(name, "boxes") == 0) {
		p->has_boxes = true;
		return begin_rows(p) && json_take_array(s, add_corners, p);
	}
	if (strcmp(name, "labels") == 0) {
		p->has_labels = true;
		return json_take_array(s, add_label, p);
	}
	return json_skip(s);
}

int rows_json(struct rows *r, const char *text, size_t bytes, struct error *err)
{
	struct row_parse p = {.rows = r};
	struct json_scan s = json_scan(text, bytes), probe = s;
	bool right;

	clear(r);
	right = json_take_array(&s, add_object, &p);
	if (!right && p.rc == 0 && s.depth == 0 && rows_count(r) == 0) {
		s = probe;
		right = json_take_object(&s, rows_member, &p);
		if (right)
			p.why = check_object(&p);
	}
	right = right && !p.why && json_is_over(&s);
	if (right)
		return 0;
	clear(r);
	if (p.rc == -ENOMEM)
		return error_set(err, p.rc, "%m");
	return error_set(err, p.rc ? p.rc : -EBADMSG,
		"damaged JSON, at byte %zu: %s", (size_t)(s.at - text),
		p.why ? p.why : "it is malformed");
}

/* -- YOLO ------------------------------------------------------------------ */

/* Parse the numbers of a line. Returns how many there are, or -1 if one is
 * malformed. */
static int take_numbers(const char *at, const char *end, double *to, int most)
{
	struct json_scan s = json_scan(at, (size_t)(end - at));
	int n = 0;

	while (!json_is_over(&s)) {
		/* Numbers must be separated by blanks; otherwise "1.5.5" would
		 * be two numbers. */
		if (n == most || !json_take_real(&s, &to[n++]) ||
			(s.at < s.end && !strchr(" \t\r", *s.at)))
			return -1;
	}
	return n;
}

static const char *yolo_row(const double *v, int n, uint32_t width,
	uint32_t height, struct row_object *o)
{
	struct box *b = &o->box;

	*b = (struct box){.flags = 0};
	o->points = (uint32_t)(n - 5) / 3;
	if (n < 5 || (n - 5) % 3 != 0)
		return "a line has a class, x, y, width, height, and perhaps "
		       "x y v of each point";
	if (!(v[0] >= 0 && v[0] <= INT32_MAX && v[0] == floor(v[0])))
		return "the first number is not that of a class";
	if (!(v[3] >= 0 && v[3] <= 2 && v[4] >= 0 && v[4] <= 2 &&
		    fabs(v[1]) <= 2 && fabs(v[2]) <= 2))
		return "a box is not given in shares of the image";
	b->label = (int32_t)v[0];
	b->x0 = (float)((v[1] - v[3] / 2) * width);
	b->y0 = (float)((v[2] - v[4] / 2) * height);
	b->x1 = (float)((v[1] + v[3] / 2) * width);
	b->y1 = (float)((v[2] + v[4] / 2) * height);
	for (int i = 5; i < n; i += 3) {
		o->point[i - 5] = (float)(v[i] * width);
		o->point[i - 4] = (float)(v[i + 1] * height);
		o->point[i - 3] = (float)v[i + 2];
	}
	return NULL;
}

static int yolo_line(struct rows *r, const char *at, const char *end,
	uint32_t width, uint32_t height, const char **why)
{
	double v[5 + 3 * ROW_POINTS_MAX];
	int n = take_numbers(at, end, v, (int)(sizeof(v) / sizeof(v[0])));
	struct row_object o;

	*why = NULL;
	if (n == 0)
		return 0;
	*why = n < 0 ? "it is not a line of numbers"
		     : yolo_row(v, n, width, height, &o);
	return *why ? -EBADMSG : append_row(r, &o, why);
}

int rows_yolo(struct rows *r, const char *text, size_t bytes, uint32_t width,
	uint32_t height, struct error *err)
{
	const char *at = text, *end = text + bytes;

	clear(r);
	for (size_t line = 1; at < end; line++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at)), *why;
		const char *stop = nl ? nl : end;
		int rc = yolo_line(r, at, stop, width, height, &why);

		if (rc < 0) {
			clear(r);
			return why ? error_set(err, rc, "damaged, line %zu: %s",
					     line, why)
				   : error_set(err, rc, "%m");
		}
		at = nl ? nl + 1 : end;
	}
	return 0;
}

/* -- Class numbers --------------------------------------------------------- */

struct class_numbers {
	struct array *out;
	bool no_memory;
};

static bool take_class(struct json_scan *s, void *arg)
{
	struct class_numbers *c = arg;
	uint64_t number;
	int32_t *to;

	if (!json_take_number(s, &number) || number > INT32_MAX ||
		array_count(c->out, sizeof(*to)) >= ROWS_MAX)
		return false;
	to = array_grow(c->out, sizeof(*to));
	if (to)
		*to = (int32_t)number;
	c->no_memory = !to;
	return to != NULL;
}

/* Take numbers. They must be separated by blanks, because otherwise "1.5" could
 * be taken as two numbers. */
static bool take_words(struct json_scan *s, struct class_numbers *c)
{
	while (!json_is_over(s))
		if (!take_class(s, c) ||
			(s->at < s->end && !strchr(" \t\r\n", *s->at)))
			return false;
	return true;
}

int rows_numbers(
	struct array *out, const char *text, size_t bytes, struct error *err)
{
	struct class_numbers c = {.out = out};
	struct json_scan s = json_scan(text, bytes), words = s;
	size_t before = array_bytes(out);

	if (json_take_array(&s, take_class, &c) && json_is_over(&s))
		return 0;
	if (array_bytes(out) == before && !c.no_memory) {
		s = words;
		if (take_words(&s, &c))
			return 0;
	}
	out->bytes = before;
	if (c.no_memory)
		return error_set(err, -ENOMEM, "%m");
	return error_set(err, -EBADMSG,
		"damaged, at byte %zu: it is not the number of a class, or "
		"there are more than 65536",
		(size_t)(s.at - text));
}

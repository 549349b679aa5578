/* SPDX-License-Identifier: MIT */
/* map_rows FIELD < CASES > RESULTS: maps rows of one field through views, which
 * it reads from standard input. fields_map.py computes the same with NumPy and
 * compares. Numbers are in the byte order of this machine. One thread. */
#include <errno.h>
#include <refrain/loader.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/fields/map.h"

static void take(void *to, size_t size, size_t count)
{
	if (count > 0 && fread(to, size, count, stdin) != count) {
		perror("map_rows: input");
		exit(1);
	}
}

static void give(const void *from, size_t size, size_t count)
{
	if (count > 0 && fwrite(from, size, count, stdout) != count) {
		perror("map_rows: output");
		exit(1);
	}
}

static void *room(size_t bytes)
{
	void *p = malloc(bytes + 1);

	if (!p)
		abort();
	return p;
}

/* Read a view. Returns false at the end of the input. */
static bool take_view(struct field_view *v)
{
	double at[4];
	uint32_t sides[5];

	if (fread(at, sizeof(at), 1, stdin) != 1)
		return false;
	take(sides, sizeof(sides), 1);
	*v = (struct field_view){at[0], at[1], at[2], at[3], sides[0], sides[1],
		sides[2], sides[3], sides[4] != 0};
	return true;
}

/* Map one case. For boxes and points, the memory has room for exactly `max`
 * rows, so that a memory checker sees a row that is written after them. */
static void map_case(const struct field_def *f, const struct field_view *v)
{
	bool boxes = f->kind == REFRAIN_KIND_BOXES;
	size_t values = boxes ? 4 : 3 * (size_t)f->points;
	uint32_t count;
	struct map_out out;
	void *in;

	take(&count, sizeof(count), 1);
	in = room(
		count * (boxes ? sizeof(struct box) : values * sizeof(float)));
	take(in, boxes ? sizeof(struct box) : values * sizeof(float), count);
	out.values = room(f->max * values * sizeof(float));
	out.label = boxes ? room(f->max * sizeof(int32_t)) : NULL;
	out.which = room(f->max * sizeof(int32_t));
	if (boxes)
		map_boxes(f, v, in, count, &out);
	else
		map_points(f, v, in, count, &out);
	give(&out.count, sizeof(out.count), 1);
	give(&out.cut, sizeof(out.cut), 1);
	give(out.values, values * sizeof(float), out.count);
	if (boxes)
		give(out.label, sizeof(int32_t), out.count);
	give(out.which, sizeof(int32_t), out.count);
	free(in);
	free(out.values);
	free(out.label);
	free(out.which);
}

static void mask_case(const struct field_def *f, const struct field_view *v)
{
	static const unsigned bytes[] = {
		[REFRAIN_U8] = 1, [REFRAIN_U16] = 2, [REFRAIN_I32] = 4};
	uint32_t region[5];
	size_t ids = (size_t)v->sample_width * v->sample_height;
	struct id_image in;
	uint8_t *data, *out = room(ids * bytes[f->type]);
	int32_t rc;

	take(region, sizeof(region), 1);
	data = room((size_t)region[0] * region[3] * region[4]);
	take(data, region[0], (size_t)region[3] * region[4]);
	in = (struct id_image){
		.data = data,
		.stride_bytes = (size_t)region[0] * region[3],
		.id_bytes = region[0],
		.x = region[1],
		.y = region[2],
		.width = region[3],
		.height = region[4],
	};
	rc = map_mask(f, v, &in, out);
	give(&rc, sizeof(rc), 1);
	if (rc == 0)
		give(out, bytes[f->type], ids);
	free(data);
	free(out);
}

int main(int argc, char **argv)
{
	struct fields fields;
	struct field_view v;
	struct error err;

	if (argc != 2 || fields_parse(&fields, argv[1], &err) < 0)
		return fprintf(stderr, "map_rows: %s\n",
			       argc == 2 ? err.msg : "FIELD"),
		       2;
	while (take_view(&v))
		if (fields.field[0].kind == REFRAIN_KIND_MASK)
			mask_case(&fields.field[0], &v);
		else
			map_case(&fields.field[0], &v);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Fuzz targets: rows of annotations, as YOLO lines, as JSON and as JSON files
 * of COCO; and the text of fields. Each input must give either a message or
 * rows of finite numbers. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "loader/dataset/annotations.h"
#include "loader/dataset/rows.h"
#include "loader/fields/fields.h"

static struct rows rows;

static void free_rows(void)
{
	rows_memory_release(&rows);
}

static void check_boxes(const struct box *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		FUZZ_MUST(b[i].label >= -1);
		FUZZ_MUST(isfinite(b[i].x0) && isfinite(b[i].y0));
		FUZZ_MUST(!isnan(b[i].x1) && !isnan(b[i].y1));
		FUZZ_MUST(b[i].x1 >= b[i].x0 && b[i].y1 >= b[i].y0);
	}
}

static void check_rows(int rc, const struct error *err)
{
	FUZZ_MUST(rc == 0 || ((rc == -EBADMSG || rc == -E2BIG) && *err->msg));
	FUZZ_MUST(rc == 0 || rows_count(&rows) == 0);
	FUZZ_MUST(array_bytes(&rows.points) ==
		rows_count(&rows) * rows.row_points * 3 * sizeof(float));
	check_boxes(array_data(&rows.boxes), rows_count(&rows));
}

static void check_numbers(const uint8_t *data, size_t size)
{
	struct array numbers = {NULL, 0, 0};
	struct error err = {""};
	int rc = rows_numbers(&numbers, (const char *)data, size, &err);
	const int32_t *number = array_data(&numbers);

	FUZZ_MUST(rc == 0 || (rc == -EBADMSG && *err.msg));
	FUZZ_MUST(rc == 0 || array_bytes(&numbers) == 0);
	for (size_t i = 0; i < array_count(&numbers, sizeof(*number)); i++)
		FUZZ_MUST(number[i] >= 0);
	array_release(&numbers);
}

static void yolo_one(const uint8_t *data, size_t size)
{
	struct error err = {""};

	if (array_room_bytes(&rows.boxes) == 0)
		(void)atexit(free_rows);
	check_rows(rows_yolo(&rows, (const char *)data, size, 640, 480, &err),
		&err);
	check_numbers(data, size);
}

static size_t yolo_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"0 0.5 0.5 0.25 0.25\n12 0.125 0.9 0.1 0.2\n",
		"0 0.5 0.5 1 1 0.25 0.5 2 0 0 0\n", "\n\n7 1e-1 2E-1 0 0\r\n",
		"", "3 17\n4", "[1, 2, 99]", NULL};

	return fuzz_seed_text(texts, i, buf);
}

static void rows_one(const uint8_t *data, size_t size)
{
	struct error err = {""};

	if (array_room_bytes(&rows.boxes) == 0)
		(void)atexit(free_rows);
	check_rows(rows_json(&rows, (const char *)data, size, &err), &err);
}

static size_t rows_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"[{\"bbox\": [1, 2.5, 3, 4e0], \"category_id\": 5, \"area\": "
		"[{}]}, {\"label\": 6, \"iscrowd\": 1, \"bbox\": [0,0,1,1]}]",
		"{\"objects\": [{\"bbox\": [1,2,3,4], \"label\": 0, "
		"\"keypoints\": [1,2,2, 3,4,0]}]}",
		"{\"boxes\": [[1,2,3,4],[5,6,7,8]], \"labels\": [9, 10]}", "[]",
		NULL};

	return fuzz_seed_text(texts, i, buf);
}

static void coco_one(const uint8_t *data, size_t size)
{
	static int dir = -1;
	static char top[64];
	char path[96];
	struct annotations *a;
	struct annotations_totals t;
	struct annotation_rows r;
	struct error err = {""};
	int rc;

	if (dir < 0)
		dir = fuzz_dir(top);
	fuzz_file(dir, "coco.json", data, size);
	(void)snprintf(path, sizeof(path), "%s/coco.json", top);
	rc = annotations_open(&a, path, NULL, &err);
	FUZZ_MUST(rc == 0 || ((rc == -EBADMSG || rc == -E2BIG) && *err.msg));
	if (rc < 0)
		return;
	annotations_totals(a, &t);
	FUZZ_MUST(t.images > 0);
	if (annotations_find(a, "x/1.jpg", &r) == 0)
		check_boxes(r.boxes, r.count);
	annotations_close(a);
}

static size_t coco_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"{\"info\": {\"x\": [\"}\\\"]\", 1]}, \"images\": [{\"id\": 7, "
		"\"file_name\": \"1.jpg\", \"width\": 640, \"height\": 480}, "
		"{\"file_name\": \"2.jpg\", \"id\": 5}], \"annotations\": "
		"[{\"image_id\": 7, \"category_id\": 3, \"segmentation\": "
		"[[1.5, 2, 3e1]], \"bbox\": [1, 2, 3, 4], \"id\": 1}], "
		"\"categories\": [{\"id\": 3, \"name\": \"d\\u00f6g\"}]}",
		"{\"categories\": [{\"id\": 0}], \"annotations\": "
		"[{\"image_id\": 1, \"bbox\": [0,0,1,1], \"category_id\": 0, "
		"\"keypoints\": [1,2,2]}], \"images\": [{\"id\": 1, "
		"\"file_name\": \"1.jpg\"}]}",
		NULL};

	return fuzz_seed_text(texts, i, buf);
}

/* Check that the canonical text has the same meaning, and is its own canonical
 * text. */
static void fields_one(const uint8_t *data, size_t size)
{
	static char first[FIELDS_TEXT_MAX], second[FIELDS_TEXT_MAX];
	char *text = fuzz_text(data, size);
	struct error err = {""};
	struct fields f;
	int rc = fields_parse(&f, text, &err);

	FUZZ_MUST(rc == 0 || (rc == -EINVAL && *err.msg));
	if (rc == 0) {
		FUZZ_MUST(f.count > 0 && f.count <= FIELDS_MAX);
		fields_text(&f, first);
		FUZZ_MUST(fields_parse(&f, first, &err) == 0);
		fields_text(&f, second);
		FUZZ_MUST(strcmp(first, second) == 0);
	}
	free(text);
}

static size_t fields_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"image; boxes max=100 keep=centre; text=txt max=512 optional",
		"mask=seg.png type=u16 fill=65535; class; classes max=3",
		"points points=17 pairs=2-3,4-5 max=9; b=json kind=boxes "
		"keep=visible min_visible=0.25 min_side=2.5 crowd",
		"tokens length=64 overlap=0 from=u32 type=i32 fixed",
		"array crop=8x16x16 channels=2 type=u16", NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_yolo = {"yolo", yolo_one, yolo_seed};
const struct fuzz_target fuzz_rows = {"rows", rows_one, rows_seed};
const struct fuzz_target fuzz_coco = {"coco", coco_one, coco_seed};
const struct fuzz_target fuzz_fields = {"fields", fields_one, fields_seed};

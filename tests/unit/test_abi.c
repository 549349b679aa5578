/* SPDX-License-Identifier: MIT */
/*
 * The binary interface of the library, as existing programs were built with it:
 * sizes, offsets and values. A change that makes this test fail breaks these
 * programs. New members go to the end of a struct and get a line; no line ever
 * changes.
 */
#include <stddef.h>
#include <stdlib.h>

#include "refrain/echo.h"
#include "refrain/loader.h"
#include "suite.h"

struct row {
	const char *name;
	size_t is, was, is_bytes, was_bytes;
};

#define SIZE(s, bytes)                                                         \
	{                                                                      \
#s, sizeof(struct s), bytes, 0, 0                              \
	}
#define MEMBER(s, m, offset, bytes)                                            \
	{                                                                      \
#s "." #m, offsetof(struct s, m), offset,                      \
			sizeof(((struct s *)NULL)->m), bytes                   \
	}
#define VALUE(v, is)                                                           \
	{                                                                      \
#v, v, is, 0, 0                                                \
	}

/* The offsets on machines with pointers of 64 bits. */
static const struct row layout[] = {
	SIZE(refrain_encoded, 48),
	MEMBER(refrain_encoded, size, 0, 8),
	MEMBER(refrain_encoded, data, 8, 8),
	MEMBER(refrain_encoded, bytes, 16, 8),
	MEMBER(refrain_encoded, path, 24, 8),
	MEMBER(refrain_encoded, index, 32, 8),
	MEMBER(refrain_encoded, field, 40, 8),
	SIZE(refrain_decoded, 96),
	MEMBER(refrain_decoded, size, 0, 8),
	MEMBER(refrain_decoded, data, 8, 8),
	MEMBER(refrain_decoded, bytes, 16, 8),
	MEMBER(refrain_decoded, width, 24, 4),
	MEMBER(refrain_decoded, height, 28, 4),
	MEMBER(refrain_decoded, channels, 32, 4),
	MEMBER(refrain_decoded, type, 36, 4),
	MEMBER(refrain_decoded, ndim, 40, 4),
	MEMBER(refrain_decoded, reserved, 44, 4),
	MEMBER(refrain_decoded, shape, 48, 48),
	SIZE(refrain_config, 448),
	MEMBER(refrain_config, size, 0, 8),
	MEMBER(refrain_config, dataset, 8, 8),
	MEMBER(refrain_config, source, 16, 4),
	MEMBER(refrain_config, root, 24, 8),
	MEMBER(refrain_config, record_bytes, 32, 4),
	MEMBER(refrain_config, label_bytes, 36, 4),
	MEMBER(refrain_config, batch, 40, 4),
	MEMBER(refrain_config, epochs, 44, 4),
	MEMBER(refrain_config, seed, 48, 8),
	MEMBER(refrain_config, echo, 56, 8),
	MEMBER(refrain_config, echo_point, 64, 4),
	MEMBER(refrain_config, window, 68, 4),
	MEMBER(refrain_config, min_lag, 72, 4),
	MEMBER(refrain_config, shuffle_window, 76, 4),
	MEMBER(refrain_config, rank, 80, 4),
	MEMBER(refrain_config, world, 84, 4),
	MEMBER(refrain_config, last, 88, 4),
	MEMBER(refrain_config, flags, 92, 4),
	MEMBER(refrain_config, height, 96, 4),
	MEMBER(refrain_config, width, 100, 4),
	MEMBER(refrain_config, type, 104, 4),
	MEMBER(refrain_config, layout, 108, 4),
	MEMBER(refrain_config, augment, 112, 4),
	MEMBER(refrain_config, mean, 116, 12),
	MEMBER(refrain_config, std, 128, 12),
	MEMBER(refrain_config, area_min, 140, 4),
	MEMBER(refrain_config, area_max, 144, 4),
	MEMBER(refrain_config, aspect_min, 148, 4),
	MEMBER(refrain_config, aspect_max, 152, 4),
	MEMBER(refrain_config, jitter, 156, 12),
	MEMBER(refrain_config, cutout, 168, 4),
	MEMBER(refrain_config, decode, 176, 8),
	MEMBER(refrain_config, augment_fn, 184, 8),
	MEMBER(refrain_config, ctx, 192, 8),
	MEMBER(refrain_config, decoded_max_bytes, 200, 8),
	MEMBER(refrain_config, sample_bytes, 208, 8),
	MEMBER(refrain_config, policy, 216, 4),
	MEMBER(refrain_config, max_pixels, 224, 8),
	MEMBER(refrain_config, threads, 232, 4),
	MEMBER(refrain_config, batches_ahead, 236, 4),
	MEMBER(refrain_config, reads_ahead, 240, 4),
	MEMBER(refrain_config, memory_bytes, 248, 8),
	MEMBER(refrain_config, cpus, 256, 8),
	MEMBER(refrain_config, cpu_count, 264, 4),
	MEMBER(refrain_config, nice, 268, 4),
	MEMBER(refrain_config, alloc, 272, 8),
	MEMBER(refrain_config, free, 280, 8),
	MEMBER(refrain_config, alloc_ctx, 288, 8),
	MEMBER(refrain_config, state, 296, 8),
	MEMBER(refrain_config, state_bytes, 304, 8),
	MEMBER(refrain_config, echo_max, 312, 8),
	MEMBER(refrain_config, echo_log, 320, 8),
	MEMBER(refrain_config, open_timeout_ms, 328, 4),
	MEMBER(refrain_config, bucket, 332, 4),
	MEMBER(refrain_config, max_damage, 336, 8),
	MEMBER(refrain_config, share, 344, 8),
	MEMBER(refrain_config, share_jobs, 352, 4),
	MEMBER(refrain_config, share_batch, 356, 4),
	MEMBER(refrain_config, share_slow, 360, 4),
	MEMBER(refrain_config, share_grace_s, 364, 4),
	MEMBER(refrain_config, fields, 368, 8),
	MEMBER(refrain_config, annotations, 376, 8),
	MEMBER(refrain_config, epoch_examples, 384, 8),
	MEMBER(refrain_config, subset, 392, 8),
	MEMBER(refrain_config, subset_seed, 400, 8),
	MEMBER(refrain_config, mix, 408, 8),
	MEMBER(refrain_config, service, 416, 8),
	MEMBER(refrain_config, service_dataset, 424, 8),
	MEMBER(refrain_config, service_local, 432, 4),
	MEMBER(refrain_config, service_secret, 440, 8),
	SIZE(refrain_member, 64),
	MEMBER(refrain_member, size, 0, 8),
	MEMBER(refrain_member, name, 8, 8),
	MEMBER(refrain_member, arg, 16, 8),
	MEMBER(refrain_member, help, 24, 8),
	MEMBER(refrain_member, type, 32, 4),
	MEMBER(refrain_member, count, 36, 4),
	MEMBER(refrain_member, fallback, 40, 8),
	MEMBER(refrain_member, min, 48, 8),
	MEMBER(refrain_member, max, 56, 8),
	SIZE(refrain_batch, 192),
	MEMBER(refrain_batch, size, 0, 8),
	MEMBER(refrain_batch, data, 8, 8),
	MEMBER(refrain_batch, data_bytes, 16, 8),
	MEMBER(refrain_batch, sample_bytes, 24, 8),
	MEMBER(refrain_batch, count, 32, 4),
	MEMBER(refrain_batch, type, 36, 4),
	MEMBER(refrain_batch, layout, 40, 4),
	MEMBER(refrain_batch, ndim, 44, 4),
	MEMBER(refrain_batch, shape, 48, 32),
	MEMBER(refrain_batch, step, 80, 8),
	MEMBER(refrain_batch, epoch, 88, 8),
	MEMBER(refrain_batch, fresh, 96, 4),
	MEMBER(refrain_batch, ends_epoch, 100, 4),
	MEMBER(refrain_batch, labels, 104, 8),
	MEMBER(refrain_batch, indices, 112, 8),
	MEMBER(refrain_batch, substitutes, 120, 8),
	MEMBER(refrain_batch, echoes, 128, 8),
	MEMBER(refrain_batch, seeds, 136, 8),
	MEMBER(refrain_batch, status, 144, 8),
	MEMBER(refrain_batch, crops, 152, 8),
	MEMBER(refrain_batch, ended_epoch, 160, 8),
	MEMBER(refrain_batch, columns, 168, 8),
	MEMBER(refrain_batch, column_count, 176, 4),
	MEMBER(refrain_batch, column_bytes, 180, 4),
	MEMBER(refrain_batch, crop_bytes, 184, 4),
	MEMBER(refrain_batch, reserved, 188, 4),
	SIZE(refrain_column, 112),
	MEMBER(refrain_column, name, 0, 8),
	MEMBER(refrain_column, kind, 8, 4),
	MEMBER(refrain_column, type, 12, 4),
	MEMBER(refrain_column, ndim, 16, 4),
	MEMBER(refrain_column, flags, 20, 4),
	MEMBER(refrain_column, shape, 24, 48),
	MEMBER(refrain_column, data, 72, 8),
	MEMBER(refrain_column, data_bytes, 80, 8),
	MEMBER(refrain_column, row_bytes, 88, 8),
	MEMBER(refrain_column, offsets, 96, 8),
	MEMBER(refrain_column, lengths, 104, 8),
	SIZE(refrain_crop, 48),
	MEMBER(refrain_crop, x, 0, 8),
	MEMBER(refrain_crop, y, 8, 8),
	MEMBER(refrain_crop, width, 16, 8),
	MEMBER(refrain_crop, height, 24, 8),
	MEMBER(refrain_crop, image_width, 32, 4),
	MEMBER(refrain_crop, image_height, 36, 4),
	MEMBER(refrain_crop, flip, 40, 4),
	MEMBER(refrain_crop, reserved, 44, 4),
	SIZE(refrain_failure, 32),
	MEMBER(refrain_failure, size, 0, 8),
	MEMBER(refrain_failure, error, 8, 4),
	MEMBER(refrain_failure, stage, 12, 4),
	MEMBER(refrain_failure, index, 16, 8),
	MEMBER(refrain_failure, step, 24, 8),
	SIZE(refrain_stage, 40),
	MEMBER(refrain_stage, items, 0, 8),
	MEMBER(refrain_stage, bytes, 8, 8),
	MEMBER(refrain_stage, cpu_ns, 16, 8),
	MEMBER(refrain_stage, busy_ns, 24, 8),
	MEMBER(refrain_stage, wait_ns, 32, 8),
	SIZE(refrain_stats, 680),
	MEMBER(refrain_stats, size, 0, 8),
	MEMBER(refrain_stats, epochs, 8, 8),
	MEMBER(refrain_stats, steps, 16, 8),
	MEMBER(refrain_stats, fresh, 24, 8),
	MEMBER(refrain_stats, served, 32, 8),
	MEMBER(refrain_stats, files_read, 40, 8),
	MEMBER(refrain_stats, bytes_read, 48, 8),
	MEMBER(refrain_stats, decodes, 56, 8),
	MEMBER(refrain_stats, redecodes, 64, 8),
	MEMBER(refrain_stats, rereads, 72, 8),
	MEMBER(refrain_stats, errors, 80, 8),
	MEMBER(refrain_stats, errors_read, 88, 8),
	MEMBER(refrain_stats, errors_format, 96, 8),
	MEMBER(refrain_stats, errors_damaged, 104, 8),
	MEMBER(refrain_stats, errors_too_large, 112, 8),
	MEMBER(refrain_stats, substituted, 120, 8),
	MEMBER(refrain_stats, zero_filled, 128, 8),
	MEMBER(refrain_stats, dropped_examples, 136, 8),
	MEMBER(refrain_stats, dropped_echoes, 144, 8),
	MEMBER(refrain_stats, in_batch_duplicates, 152, 8),
	MEMBER(refrain_stats, min_lag_steps, 160, 8),
	MEMBER(refrain_stats, mean_lag_steps, 168, 8),
	MEMBER(refrain_stats, echo_factor, 176, 8),
	MEMBER(refrain_stats, pool_bytes, 184, 8),
	MEMBER(refrain_stats, pool_bytes_peak, 192, 8),
	MEMBER(refrain_stats, memory_bytes, 200, 8),
	MEMBER(refrain_stats, memory_bytes_peak, 208, 8),
	MEMBER(refrain_stats, reads_abandoned, 216, 8),
	MEMBER(refrain_stats, stages, 224, 160),
	MEMBER(refrain_stats, t_upstream_ms, 384, 8),
	MEMBER(refrain_stats, t_downstream_ms, 392, 8),
	MEMBER(refrain_stats, r, 400, 8),
	MEMBER(refrain_stats, stall_pct, 408, 8),
	MEMBER(refrain_stats, stream_hash, 416, 8),
	MEMBER(refrain_stats, bottleneck, 424, 8),
	MEMBER(refrain_stats, suggested_point, 432, 8),
	MEMBER(refrain_stats, echo_changes, 440, 8),
	MEMBER(refrain_stats, direct_hits, 448, 8),
	MEMBER(refrain_stats, end_duplicates, 456, 8),
	MEMBER(refrain_stats, damaged_examples, 464, 8),
	MEMBER(refrain_stats, substitute_errors, 472, 8),
	MEMBER(refrain_stats, echo_reason, 480, 8),
	MEMBER(refrain_stats, echo_needs_fresh, 488, 8),
	MEMBER(refrain_stats, dropped_fresh, 496, 8),
	MEMBER(refrain_stats, share_host_pid, 504, 8),
	MEMBER(refrain_stats, share_jobs, 512, 8),
	MEMBER(refrain_stats, share_takeovers, 520, 8),
	MEMBER(refrain_stats, share_solo, 528, 8),
	MEMBER(refrain_stats, share_parted, 536, 8),
	MEMBER(refrain_stats, skipped_files, 544, 8),
	MEMBER(refrain_stats, skipped_first, 552, 8),
	MEMBER(refrain_stats, empty_classes, 560, 8),
	MEMBER(refrain_stats, empty_first, 568, 8),
	MEMBER(refrain_stats, memory_wanted_bytes, 576, 8),
	MEMBER(refrain_stats, mount_returns, 584, 8),
	MEMBER(refrain_stats, rows_cut, 592, 8),
	MEMBER(refrain_stats, decoded_bytes, 600, 8),
	MEMBER(refrain_stats, tail_tokens, 608, 8),
	MEMBER(refrain_stats, service_remote, 616, 8),
	MEMBER(refrain_stats, service_late, 624, 8),
	MEMBER(refrain_stats, service_missing, 632, 8),
	MEMBER(refrain_stats, service_bad, 640, 8),
	MEMBER(refrain_stats, service_failed, 648, 8),
	MEMBER(refrain_stats, service_bytes, 656, 8),
	MEMBER(refrain_stats, service_live, 664, 8),
	MEMBER(refrain_stats, service_workers, 672, 8),
	SIZE(refrain_serving, 48),
	MEMBER(refrain_serving, size, 0, 8),
	MEMBER(refrain_serving, example, 8, 8),
	MEMBER(refrain_serving, seed, 16, 8),
	MEMBER(refrain_serving, echo, 24, 4),
	MEMBER(refrain_serving, last, 28, 4),
	MEMBER(refrain_serving, serving, 32, 8),
	MEMBER(refrain_serving, epoch, 40, 8),
	SIZE(refrain_echo_stats, 128),
	MEMBER(refrain_echo_stats, size, 0, 8),
	MEMBER(refrain_echo_stats, epoch, 8, 8),
	MEMBER(refrain_echo_stats, serving, 16, 8),
	MEMBER(refrain_echo_stats, fresh, 24, 8),
	MEMBER(refrain_echo_stats, served, 32, 8),
	MEMBER(refrain_echo_stats, pulled, 40, 8),
	MEMBER(refrain_echo_stats, duplicates, 48, 8),
	MEMBER(refrain_echo_stats, pull_ns, 56, 8),
	MEMBER(refrain_echo_stats, augment_ns, 64, 8),
	MEMBER(refrain_echo_stats, trainer_ns, 72, 8),
	MEMBER(refrain_echo_stats, window, 80, 8),
	MEMBER(refrain_echo_stats, echo_factor, 88, 8),
	MEMBER(refrain_echo_stats, echo_changes, 96, 8),
	MEMBER(refrain_echo_stats, t_upstream_ms, 104, 8),
	MEMBER(refrain_echo_stats, t_downstream_ms, 112, 8),
	MEMBER(refrain_echo_stats, r, 120, 8),
};

static const struct row values[] = {
	VALUE(REFRAIN_SOURCE_AUTO, 0),
	VALUE(REFRAIN_SOURCE_FOLDER, 1),
	VALUE(REFRAIN_SOURCE_LIST, 2),
	VALUE(REFRAIN_SOURCE_TAR, 3),
	VALUE(REFRAIN_SOURCE_RAW, 4),
	VALUE(REFRAIN_ECHO_BEFORE, 0),
	VALUE(REFRAIN_ECHO_AFTER, 1),
	VALUE(REFRAIN_ECHO_BATCH, 2),
	VALUE(REFRAIN_AUGMENT_TRAIN, 0),
	VALUE(REFRAIN_AUGMENT_EVAL, 1),
	VALUE(REFRAIN_AUGMENT_NONE, 2),
	VALUE(REFRAIN_AUGMENT_FIT, 3),
	VALUE(REFRAIN_AUGMENT_IOU, 4),
	VALUE(REFRAIN_U8, 0),
	VALUE(REFRAIN_F16, 1),
	VALUE(REFRAIN_F32, 2),
	VALUE(REFRAIN_U16, 3),
	VALUE(REFRAIN_I16, 4),
	VALUE(REFRAIN_I32, 5),
	VALUE(REFRAIN_I64, 6),
	VALUE(REFRAIN_F64, 7),
	VALUE(REFRAIN_BF16, 8),
	VALUE(REFRAIN_KIND_IMAGE, 1),
	VALUE(REFRAIN_KIND_CLASS, 2),
	VALUE(REFRAIN_KIND_CLASSES, 3),
	VALUE(REFRAIN_KIND_BOXES, 4),
	VALUE(REFRAIN_KIND_POINTS, 5),
	VALUE(REFRAIN_KIND_MASK, 6),
	VALUE(REFRAIN_KIND_AUDIO, 7),
	VALUE(REFRAIN_KIND_TOKENS, 8),
	VALUE(REFRAIN_KIND_ARRAY, 9),
	VALUE(REFRAIN_KIND_BYTES, 10),
	VALUE(REFRAIN_FLIP_HORIZONTAL, 1),
	VALUE(REFRAIN_FLIP_VERTICAL, 2),
	VALUE(REFRAIN_NHWC, 0),
	VALUE(REFRAIN_NCHW, 1),
	VALUE(REFRAIN_SUBSTITUTE, 0),
	VALUE(REFRAIN_ZERO_FILL, 1),
	VALUE(REFRAIN_FAIL, 2),
	VALUE(REFRAIN_LAST_SHORT, 0),
	VALUE(REFRAIN_LAST_DROP, 1),
	VALUE(REFRAIN_FLAG_IN_ORDER, 1),
	VALUE(REFRAIN_FLAG_NO_FLIP, 2),
	VALUE(REFRAIN_FLAG_NO_ORIENT, 4),
	VALUE(REFRAIN_FLAG_PAD_RANKS, 8),
	VALUE(REFRAIN_FLAG_ALLOW_DUPLICATES, 16),
	VALUE(REFRAIN_FLAG_NO_NORMALISE, 32),
	VALUE(REFRAIN_FLAG_NO_MOUNT_HELP, 64),
	VALUE(REFRAIN_FLAG_ADMIT_PLANNED, 512),
	VALUE(REFRAIN_MEMBER_NUMBER, 0),
	VALUE(REFRAIN_MEMBER_REAL, 1),
	VALUE(REFRAIN_MEMBER_ECHO, 2),
	VALUE(REFRAIN_MEMBER_BYTES, 3),
	VALUE(REFRAIN_MEMBER_WORD, 4),
	VALUE(REFRAIN_MEMBER_FLAG, 5),
	VALUE(REFRAIN_MEMBER_SIDES, 6),
	VALUE(REFRAIN_MEMBER_TEXT, 7),
	VALUE(REFRAIN_SHARE_WAIT, 0),
	VALUE(REFRAIN_SHARE_SOLO, 1),
	VALUE(REFRAIN_STAGE_READ, 0),
	VALUE(REFRAIN_STAGE_DECODE, 1),
	VALUE(REFRAIN_STAGE_AUGMENT, 2),
	VALUE(REFRAIN_STAGE_TRAINER, 3),
	VALUE(REFRAIN_STAGES, 4),
	VALUE(REFRAIN_ECHO_END, 0),
	VALUE(REFRAIN_ECHO_SERVE, 1),
	VALUE(REFRAIN_ECHO_PULL, 2),
	VALUE(REFRAIN_STATE_MAX, 256),
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ck_assert_msg(rows[i].is == rows[i].was, "%s is %zu, not %zu",
			rows[i].name, rows[i].is, rows[i].was);
		ck_assert_msg(rows[i].is_bytes == rows[i].was_bytes,
			"%s has %zu bytes, not %zu", rows[i].name,
			rows[i].is_bytes, rows[i].was_bytes);
	}
}

START_TEST(test_structs_are_laid_out_as_they_were)
{
	if (sizeof(void *) == 8)
		check_rows(layout, sizeof(layout) / sizeof(*layout));
}
END_TEST

START_TEST(test_constants_are_what_they_were)
{
	check_rows(values, sizeof(values) / sizeof(*values));
}
END_TEST

START_TEST(test_a_new_config_is_zero_but_for_its_size)
{
	static const struct refrain_config zero;
	struct refrain_config c;

	memset(&c, 0xff, sizeof(c));
	refrain_config_init(&c);
	ck_assert_uint_eq(c.size, sizeof(c));
	c.size = 0;
	ck_assert_mem_eq(&c, &zero, sizeof(c));
}
END_TEST

/* These structs are longer, like those of a newer library. */
START_TEST(test_crops_and_columns_are_found_by_their_strides)
{
	struct {
		struct refrain_crop crop;
		char newer[24];
	} crops[3] = {{.newer = "a"}};
	struct {
		struct refrain_column column;
		char newer[40];
	} columns[3] = {{{.name = "image"}, "a"}, {{.name = "class"}, "b"},
		{{.name = "boxes"}, "c"}};
	struct refrain_batch b = {.size = sizeof(b),
		.crops = &crops[0].crop,
		.crop_bytes = sizeof(*crops),
		.columns = &columns[0].column,
		.column_count = 3,
		.column_bytes = sizeof(*columns)};

	for (size_t i = 0; i < 3; i++) {
		ck_assert_ptr_eq(refrain_crop_at(&b, i), &crops[i].crop);
		ck_assert_ptr_eq(refrain_column_at(&b, i), &columns[i].column);
		ck_assert_ptr_eq(
			refrain_column_find(&b, columns[i].column.name),
			&columns[i].column);
	}
	ck_assert_ptr_null(refrain_column_at(&b, 3));
	ck_assert_ptr_null(refrain_column_find(&b, ""));
}
END_TEST

START_TEST(test_the_library_is_as_old_as_its_header)
{
	ck_assert_int_eq(refrain_version(), REFRAIN_VERSION);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("abi");
	TCase *t = case_of(s, "abi");

	tcase_add_test(t, test_structs_are_laid_out_as_they_were);
	tcase_add_test(t, test_constants_are_what_they_were);
	tcase_add_test(t, test_a_new_config_is_zero_but_for_its_size);
	tcase_add_test(t, test_crops_and_columns_are_found_by_their_strides);
	tcase_add_test(t, test_the_library_is_as_old_as_its_header);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

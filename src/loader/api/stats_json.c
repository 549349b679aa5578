/* SPDX-License-Identifier: MIT */
/*
 * Prints the statistics as JSON. A table has one row for each value. Called by
 * the user's threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/escape.h"
#include "common/base/real.h"
#include "loader/api/loader_impl.h"

enum kind { UINT, REAL, TEXT, HASH, NAME };

/* The maximum length of a printed name, in bytes. */
#define NAME_BYTES 512

struct stats_field {
	const char *name;
	size_t offset;
	enum kind kind;
};

#define FIELD(name, kind)                                                      \
	{                                                                      \
#name, offsetof(struct refrain_stats, name), kind              \
	}
#define STAGE(i, name, member)                                                 \
	{                                                                      \
		name "_" #member,                                              \
			offsetof(struct refrain_stats, stages) +               \
			(i) * sizeof(struct refrain_stage) +                   \
			offsetof(struct refrain_stage, member),                \
			UINT                                                   \
	}
#define TIME_FIELDS(i, name)                                                   \
	STAGE(i, name, items), STAGE(i, name, bytes), STAGE(i, name, busy_ns), \
		STAGE(i, name, wait_ns)

static const struct stats_field fields[] = {
	FIELD(epochs, UINT),
	FIELD(steps, UINT),
	FIELD(fresh, UINT),
	FIELD(served, UINT),
	FIELD(files_read, UINT),
	FIELD(bytes_read, UINT),
	FIELD(direct_hits, UINT),
	FIELD(decodes, UINT),
	FIELD(decoded_bytes, UINT),
	FIELD(redecodes, UINT),
	FIELD(rereads, UINT),
	FIELD(errors, UINT),
	FIELD(errors_read, UINT),
	FIELD(errors_format, UINT),
	FIELD(errors_damaged, UINT),
	FIELD(errors_too_large, UINT),
	FIELD(substituted, UINT),
	FIELD(zero_filled, UINT),
	FIELD(dropped_examples, UINT),
	FIELD(dropped_echoes, UINT),
	FIELD(in_batch_duplicates, UINT),
	FIELD(end_duplicates, UINT),
	FIELD(min_lag_steps, UINT),
	FIELD(mean_lag_steps, REAL),
	FIELD(echo_factor, REAL),
	FIELD(pool_bytes, UINT),
	FIELD(pool_bytes_peak, UINT),
	FIELD(memory_bytes, UINT),
	FIELD(memory_bytes_peak, UINT),
	FIELD(reads_abandoned, UINT),
	TIME_FIELDS(REFRAIN_STAGE_READ, "read"),
	STAGE(REFRAIN_STAGE_READ, "read", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_DECODE, "decode"),
	STAGE(REFRAIN_STAGE_DECODE, "decode", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_AUGMENT, "augment"),
	STAGE(REFRAIN_STAGE_AUGMENT, "augment", cpu_ns),
	TIME_FIELDS(REFRAIN_STAGE_TRAINER, "trainer"),
	FIELD(t_upstream_ms, REAL),
	FIELD(t_downstream_ms, REAL),
	FIELD(r, REAL),
	FIELD(stall_pct, REAL),
	FIELD(stream_hash, HASH),
	FIELD(bottleneck, TEXT),
	FIELD(suggested_point, TEXT),
	FIELD(echo_changes, UINT),
	FIELD(damaged_examples, UINT),
	FIELD(substitute_errors, UINT),
	FIELD(echo_reason, TEXT),
	FIELD(echo_needs_fresh, UINT),
	FIELD(dropped_fresh, UINT),
	FIELD(share_host_pid, UINT),
	FIELD(share_jobs, UINT),
	FIELD(share_takeovers, UINT),
	FIELD(share_solo, UINT),
	FIELD(share_parted, UINT),
	FIELD(skipped_files, UINT),
	FIELD(skipped_first, NAME),
	FIELD(empty_classes, UINT),
	FIELD(empty_first, NAME),
	FIELD(memory_wanted_bytes, UINT),
	FIELD(mount_returns, UINT),
	FIELD(rows_cut, UINT),
	FIELD(tail_tokens, UINT),
	FIELD(service_remote, UINT),
	FIELD(service_late, UINT),
	FIELD(service_missing, UINT),
	FIELD(service_bad, UINT),
	FIELD(service_failed, UINT),
	FIELD(service_bytes, UINT),
	FIELD(service_live, UINT),
	FIELD(service_workers, UINT),
};

/* Print one member whose value is a name. Returns what snprintf() returns. A
 * name may contain any bytes; bytes that are not printable are escaped. */
static int print_name(
	char *at, size_t room, const char *member, const char *name)
{
	char shown[NAME_BYTES], quoted[2 * NAME_BYTES], *to = quoted;

	if (!name)
		return snprintf(at, room, "\"%s\":null", member);
	for (const char *p = escape_text(shown, sizeof(shown), name); *p; p++) {
		if (*p == '"' || *p == '\\')
			*to++ = '\\';
		*to++ = *p;
	}
	*to = '\0';
	return snprintf(at, room, "\"%s\":\"%s\"", member, quoted);
}

/* Print one member. Returns what snprintf() returns. No other text in the
 * statistics needs escapes. */
static int print_field(
	char *at, size_t room, const struct stats_field *f, const void *stats)
{
	const void *v = (const char *)stats + f->offset;
	char real[REAL_TEXT_MAX];

	switch (f->kind) {
	case UINT:
		return snprintf(at, room, "\"%s\":%" PRIu64, f->name,
			*(const uint64_t *)v);
	case REAL:
		return snprintf(at, room, "\"%s\":%s", f->name,
			real_text(real, *(const double *)v));
	case HASH:
		return snprintf(at, room, "\"%s\":\"%016" PRIx64 "\"", f->name,
			*(const uint64_t *)v);
	case NAME:
		return print_name(at, room, f->name, *(const char *const *)v);
	case TEXT:
		break;
	}
	return snprintf(
		at, room, "\"%s\":\"%s\"", f->name, *(const char *const *)v);
}

int stats_print(const struct refrain_stats *all, char *buf, size_t size)
{
	size_t n = sizeof(fields) / sizeof(*fields), used = 0;

	for (size_t i = 0; i < n; i++) {
		if (size - used < 3)
			return -ENOSPC;
		buf[used++] = i ? ',' : '{';
		used += (size_t)print_field(
			buf + used, size - used, &fields[i], all);
		if (used + 2 > size)
			return -ENOSPC;
	}
	buf[used++] = '}';
	buf[used] = '\0';
	return (int)used;
}

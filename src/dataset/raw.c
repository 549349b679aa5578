/* SPDX-License-Identifier: MIT */
/*
 * Raw records: files of records of one size. Nothing is kept of a record; its
 * place is computed from its number. Entered by the driver of a look.
 */
#include "dataset/look_impl.h"

#include <errno.h>
#include <inttypes.h>

static int count_records(struct look *l, struct ds_shard *s, uint64_t *records)
{
	uint64_t odd = s->bytes % l->record_bytes;

	if (odd != 0)
		return look_fail(l, -EBADMSG,
			"'%s': its %" PRIu64 " bytes are not a whole number of "
			"records of %" PRIu32 ": %" PRIu64 " are left over",
			(const char *)l->ds->section[SECTION_TEXTS].data +
				s->file,
			s->bytes, l->record_bytes, odd);
	s->first = *records;
	*records += s->bytes / l->record_bytes;
	return 0;
}

int look_raw(struct look *l)
{
	struct ds_shard *s;
	int rc = 0;

	l->ds->kind = EXAMPLES_RECORDS;
	l->ds->record_bytes = l->record_bytes;
	l->ds->label_bytes = l->label_bytes;
	if (dataset_shards(l->ds) == 0)
		rc = look_list_shards(l, "");
	if (rc == 0)
		rc = look_stat_shards(l);
	s = l->ds->section[SECTION_SHARDS].data;
	for (uint32_t i = 0; rc == 0 && i < dataset_shards(l->ds); i++)
		rc = count_records(l, &s[i], &l->ds->count);
	return rc;
}

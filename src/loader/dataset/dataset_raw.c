/* SPDX-License-Identifier: MIT */
/*
 * Scans files of raw records, which all have the same size. The tables have no
 * row for a record, because its file and offset are computed from its number.
 * Called by the driver of a look.
 */
#include "loader/dataset/dataset_look_impl.h"

#include <errno.h>
#include <inttypes.h>

static int count_records(struct look *l, struct dataset *ds, uint32_t shard)
{
	uint64_t odd = ds_add_records(ds, shard);

	if (odd == 0)
		return 0;
	return look_fail(l, -EBADMSG,
		"'%s': its size of %" PRIu64 " bytes is not a multiple of the "
		"record size, %" PRIu32 ": %" PRIu64 " bytes are left over",
		dataset_shard_file(ds, shard), ds_shards(ds)[shard].bytes,
		ds->record_bytes, odd);
}

int look_raw(struct look *l)
{
	static const char *const all[] = {"", NULL};
	struct dataset *ds = l->ds;
	int rc = 0;

	ds_begin_records(ds, l->record_bytes, l->label_bytes);
	if (dataset_shards(ds) == 0)
		rc = look_list_shards(l, all);
	if (rc == 0)
		rc = look_stat_shards(l);
	for (uint32_t i = 0; rc == 0 && i < dataset_shards(ds); i++)
		rc = count_records(l, ds, i);
	return rc;
}

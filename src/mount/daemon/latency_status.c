/* SPDX-License-Identifier: MIT */
/* The histograms of `refrain status --json`; runs on a control connection. */
#include "mount/daemon/mount_impl.h"

#include "common/base/clock.h"
#include "common/base/latency.h"

static json_t *latency_object(const struct latency_sum *sum)
{
	json_t *buckets = json_array();
	uint64_t all = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		all += sum->count[i];
		(void)json_array_append_new(
			buckets, json_integer((json_int_t)sum->count[i]));
	}
	return json_pack("{s:I, s:I, s:o}", "count", (json_int_t)all, "sum_us",
		(json_int_t)(sum->ns / NS_PER_US), "buckets", buckets);
}

/* If memory is short, members are missing. */
void status_add_latency(json_t *o, const struct latency *latency)
{
	json_t *all = json_object(), *bounds = json_array();
	struct latency_sum sum;

	for (unsigned i = 0; i < LATENCY_BUCKETS - 1; i++)
		(void)json_array_append_new(
			bounds, json_integer((json_int_t)latency_bound_us(i)));
	(void)json_object_set_new(all, "bounds_us", bounds);
	for (unsigned i = 0; i < LATENCY_KINDS; i++) {
		latency_read(latency, (enum latency_kind)i, &sum);
		(void)json_object_set_new(
			all, latency_table[i].name, latency_object(&sum));
	}
	(void)json_object_set_new(o, "latency", all);
}

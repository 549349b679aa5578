/* SPDX-License-Identifier: MIT */
/* Ranges of a reader's schedule; see service_range.h. */
#include "loader/service/service_range.h"

uint32_t service_range_size(struct schedule_echo echo)
{
	return range_examples((echo.p + echo.q - 1) / echo.q);
}

static bool has_own_crops(const struct schedule *s)
{
	return schedule_settings(s)->point == SCHEDULE_BEFORE;
}

struct sample_name service_example(
	const struct schedule *s, const struct schedule_slot *slot)
{
	return (struct sample_name){
		.pass = slot->pass,
		.index = slot->index,
		.servings = has_own_crops(s) ? slot->servings : 1,
	};
}

uint32_t service_sample_of(const struct schedule *s, uint32_t k)
{
	return has_own_crops(s) ? k : 0;
}

bool service_range_at(
	const struct schedule *s, uint64_t f, struct service_range *out)
{
	uint32_t size = service_range_size(schedule_settings(s)->echo);

	*out = (struct service_range){.count = 0};
	for (uint32_t i = 0; i < size; i++) {
		struct schedule_slot slot;
		uint64_t need_by;

		if (schedule_fresh(s, f + i, &slot, &need_by) < 0)
			break;
		out->example[out->count++] = service_example(s, &slot);
	}
	out->name = range_name(out->example, out->count);
	return out->count > 0;
}

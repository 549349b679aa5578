/* SPDX-License-Identifier: MIT */
/* Finds the regions of arrays; see volumes.h. */
#include "loader/engine/volumes.h"

bool volumes_of(const struct engine_parts *parts, const struct original *o,
	struct volume *out)
{
	const struct array_crops *how = settings_array(parts->s);
	uint32_t crops = parts->c->echo_point == REFRAIN_ECHO_BEFORE
		? o->slot.servings
		: 1;

	if (!how || !dataset_volume(parts->dataset, o->index, out))
		return false;
	for (uint32_t k = 0; k < crops; k++) {
		struct volume_crop crop;

		volume_crop(how, out, settings_volume_choice(parts->s),
			schedule_augment_seed(parts->schedule, &o->slot, k),
			&crop);
		volume_add(out, how, &crop);
	}
	return true;
}

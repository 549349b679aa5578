/* SPDX-License-Identifier: MIT */
/* The volumes of originals: which region of an array all servings of an example
 * need. Needs no lock. */
#ifndef ENGINE_VOLUMES_H
#define ENGINE_VOLUMES_H

#include "loader/engine/originals_impl.h"

/* Set the volume of the example that the original has now. Returns false if
 * examples are not arrays. */
bool volumes_of(const struct engine_parts *parts, const struct original *o,
	struct volume *out);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Converts u8 values to values of a sample: tables for normalisation and type,
 * and the fill value of a cutout. An emitter is constant after its creation, so
 * any thread may use it.
 */
#ifndef IMAGE_EMITTER_IMPL_H
#define IMAGE_EMITTER_IMPL_H

#include "loader/image/augment.h"
#include "loader/image/kernels_impl.h"

void emitter_init(struct emitter *e, const struct augment_config *c);

/* Returns the bits of the binary16 that is nearest to the value; halves are
 * rounded to even. */
uint16_t half_of(float value);

/* Fill a part of a finished sample with the configured mean. */
void emitter_fill(
	const struct emitter *e, const struct rect *part, void *sample);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Converts u8 values to those of a sample: tables for normalisation and type,
 * and the fill value of a cutout. Constant once created: any thread.
 */
#ifndef IMAGE_EMITTER_IMPL_H
#define IMAGE_EMITTER_IMPL_H

#include "loader/image/augment.h"
#include "loader/image/kernels_impl.h"

void emitter_init(struct emitter *e, const struct augment_config *c);

/* The bits of the nearest binary16; halves are rounded to even. */
uint16_t half_of(float value);

/* Fill the cutout of a crop, in a finished sample. */
void emitter_cutout(
	const struct emitter *e, const struct crop *crop, void *sample);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From an encoded image to a sample: header, decoding of a region, cropping,
 * resizing, normalising.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "image/augment.h"
#include "image/decode.h"
#include "image/region.h"

#endif

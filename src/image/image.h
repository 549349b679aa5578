/* SPDX-License-Identifier: MIT */
/*
 * Turns an encoded image into a sample: header, decoding of a region, cropping,
 * resizing, normalising.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include "image/augment.h"
#include "image/decode.h"
#include "image/region.h"

#endif

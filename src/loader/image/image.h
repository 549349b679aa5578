/* SPDX-License-Identifier: MIT */
/*
 * Turns an encoded image into a sample: header, decoding of a region, cropping,
 * resizing, normalising.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "loader/image/augment.h"
#include "loader/image/decode.h"
#include "loader/image/region.h"

#endif

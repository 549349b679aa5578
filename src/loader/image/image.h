/* SPDX-License-Identifier: MIT */
/*
 * All headers for turning an encoded image into a sample: reading the header,
 * decoding a region, cropping, resizing, normalising.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "loader/image/augment.h"
#include "loader/image/decode.h"
#include "loader/image/region.h"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The print of a decoder: a hash of samples of built-in images. Two processes
 * that decode or resize differently, because of another libjpeg or a defect,
 * have different prints, so they never prepare samples for each other.
 */
#ifndef SERVICE_PRINT_H
#define SERVICE_PRINT_H

#include <stdint.h>

#include "common/base/err.h"

/* Compute the print; takes some milliseconds. Returns 0 or -errno. */
int service_print(uint64_t *print, struct error *err);

#endif

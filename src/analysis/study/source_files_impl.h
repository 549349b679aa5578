/* SPDX-License-Identifier: MIT */
/* Learns about a dataset from the names of its files, without reading them. */
#ifndef STUDY_SOURCE_FILES_IMPL_H
#define STUDY_SOURCE_FILES_IMPL_H

#include <stdbool.h>

/* Are nearly all files images that can stand in for each other? */
bool names_are_images(const char *top);

/* Does a sample seem to consist of several files? It does if names differ only
 * in their endings (a.jpg, a.txt), or if there are other files between images.
 */
bool names_are_mixed(const char *top);

#endif

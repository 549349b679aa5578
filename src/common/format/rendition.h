/* SPDX-License-Identifier: MIT */
/*
 * The rendition of a dataset: how its images differ from the originals. It is a
 * text in the file recode.json in the root of the dataset (doc/formats.md),
 * such as "quality=80". Without that file, and after re-coding without loss,
 * the text is empty, because the pixels are those of the originals. No state;
 * any thread.
 */
#ifndef FORMAT_RENDITION_H
#define FORMAT_RENDITION_H

#include <stddef.h>

/* Name of the file that says how a dataset was re-coded. */
#define RENDITION_FILE "recode.json"
/* Name of the index of a progressive dataset's levels, beside it. */
#define LEVELS_INDEX "recode.index"
/* Maximum length of a rendition, with its NUL. */
#define RENDITION_MAX 256
/* Maximum size of the file in bytes. A larger one is not ours. */
#define RENDITION_FILE_MAX 65536

/*
 * Read the rendition of the dataset whose root is dir_fd. It is "" if
 * there is no recode.json, or one of another program. Returns 0, or -errno if
 * it cannot be read.
 */
int rendition_read(int dir_fd, char text[RENDITION_MAX]);

#endif

/* SPDX-License-Identifier: MIT */
/* The mount namespace of the command. */
#ifndef STUDY_COVER_IMPL_H
#define STUDY_COVER_IMPL_H

#include "analysis/study/study.h"

/*
 * Move this process to a mount namespace in which the mount of the analysis
 * covers the source. The namespace does not keep other mounts of the host:
 * unmounts reach it, and where they do not, it has no other refrain mounts but
 * those that the command names or is in. -errno.
 */
int cover_source(const struct analyze_config *config);

#endif

/* SPDX-License-Identifier: MIT */
/* The mount namespace of the command. */
#ifndef STUDY_COVER_IMPL_H
#define STUDY_COVER_IMPL_H

#include "analysis/study/study.h"

/*
 * Move this process to a mount namespace in which the mount of the analysis
 * covers the source. The namespace keeps no mount of the host in use, because
 * unmounts outside also happen in it. Other refrain mounts, which such unmounts
 * would not reach, are detached in the namespace, except those that the command
 * names or has as its working directory. Returns 0 or -errno.
 */
int cover_source(const struct analyze_config *config);

#endif

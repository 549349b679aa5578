/* SPDX-License-Identifier: MIT */
/* Measures how the readers of a trainer spend their time, and how a delay of
 * each file changes it. */
#ifndef STUDY_LATE_IMPL_H
#define STUDY_LATE_IMPL_H

#include "analysis/study/study_run_impl.h"

/* Call this with everything cached. It delays each file, so that the daemon
 * sees every read, and sets the profile's members about readers. If the profile
 * has these members and the bottleneck is decided, it does nothing. Otherwise
 * it repeats the delays until the bottleneck is decided or the time is over. */
int late_measure(struct analysis_run *r);

#endif

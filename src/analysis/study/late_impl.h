/* SPDX-License-Identifier: MIT */
/* How the readers of a trainer spend their time, and what a delay of each file
 * does to its rate. */
#ifndef STUDY_LATE_IMPL_H
#define STUDY_LATE_IMPL_H

#include "analysis/study/study_run_impl.h"

/*
 * With everything cached, and every read seen. Sets what the profile says of
 * its readers; does nothing if it has that and is decided. Delays are repeated
 * as long as they decide nothing and there is time.
 */
int late_measure(struct analysis_run *r);

#endif

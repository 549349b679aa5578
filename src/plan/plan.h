/* SPDX-License-Identifier: MIT */
/*
 * The plan part: what a dataset holds, and the schedule: in which order it is
 * read, decoded and served.
 * Its nouns have headers of their own; other parts include those named here.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "plan/manifest.h"
#include "plan/schedule.h"

#endif

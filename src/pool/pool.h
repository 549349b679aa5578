/* SPDX-License-Identifier: MIT */
/*
 * The pool of a loader: batches in the making, the originals that they are made
 * from, and the memory for both; and how the run ends. Each part has a header
 * of its own, which is its manual.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "pool/damage.h"
#include "pool/originals.h"
#include "pool/outcome.h"
#include "pool/budget.h"
#include "pool/steps.h"

#endif

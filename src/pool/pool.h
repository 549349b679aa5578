/* SPDX-License-Identifier: MIT */
/*
 * The pool of a loader: unfinished batches, the originals that they are made
 * from, the memory for both, and how the run ends. Each part is described in
 * its own header.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "pool/damage.h"
#include "pool/originals.h"
#include "pool/outcome.h"
#include "pool/budget.h"
#include "pool/steps.h"

#endif

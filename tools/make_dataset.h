/* SPDX-License-Identifier: MIT */
/* Runs the subcommand make-dataset. */
#ifndef TOOLS_MAKE_DATASET_H
#define TOOLS_MAKE_DATASET_H

#include "common/base/option.h"

extern const struct option_usage make_dataset_usage;

/* argv[0] is the subcommand's name; returns the exit status. */
int cmd_make_dataset(int argc, char **argv);

#endif

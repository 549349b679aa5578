#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What refrain analyze predicts for a trainer whose source is busy all the time,
# beside the truth.
set -eu
name=analyze-truth-busy
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-truth-lib.sh
. "$(dirname "$0")/analyze-truth-lib.sh"

predicts busy

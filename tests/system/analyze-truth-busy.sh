#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the prediction of refrain analyze with the truth, for a trainer whose
# source is busy all the time.
set -eu
name=analyze-truth-busy
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-truth-lib.sh
. "$(dirname "$0")/analyze-truth-lib.sh"

predicts busy

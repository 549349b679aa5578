#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on a mount whose origin is slow, with the loader's
# plan: the factor follows R, everything that is fetched is used, and the origin
# is read once for each fresh example.
set -eu
name=load-auto-plan
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

help=
slower follows 5 10 20 40
note "r $r, e $e, stalled $(value stall_pct) %"
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The log of `refrain load --echo auto` makes the same stream on other storage.
set -eu
name=load-auto-replay
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

help=
slower follows 5 10 20 40
followed=$(hashes)
stop_mount
load "$work/data" --echo auto --echo-replay "$work/log" --threads 1
expect 'replayed' "$(hashes)" "$followed"
expect 'replayed changes' "$(value echo_changes)" "$(wc -l <"$work/log")"
expect 'decodes of a replay' "$(value decodes)" $images

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain verify` of a mount whose tier has a path that is not UTF-8.
set -eu
name=command-verify-bytes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/origin-hung-lib.sh
. "$(dirname "$0")/origin-hung-lib.sh"

warm_tier
"$refrain" verify "$mnt" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
grep -q '^60 entries .* 0 bad' "$work/out" || fail "$(cat "$work/out")"
stop_mount

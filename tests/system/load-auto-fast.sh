#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load --echo auto` on fast storage: the factor stays 1.
set -eu
name=load-auto-fast
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-auto-lib.sh
. "$(dirname "$0")/load-auto-lib.sh"

stays_one() {
	rm -f "$work/none"
	load "$work/data" --echo auto --echo-log "$work/none" --step-ms "$1"
	is_so "$(value r) <= 1" && [ ! -s "$work/none" ] &&
		[ "$(value echo_factor_last)" = 1.0 ] &&
		[ "$(value served)" -eq $images ]
}
slower stays_one 4 16 64

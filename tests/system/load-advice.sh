#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load` prints at its end: the time, advice on echoes if they would
# help, and why --echo auto has not changed the factor yet.
set -eu
name=load-advice
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-messages-lib.sh
. "$(dirname "$0")/load-messages-lib.sh"

says 'time  *[0-9.]* s in all' --batch 8
says 'echoes would not help' --batch 8 --step-ms 50 --steps 8
says 'slowest is' --batch 8 --no-hash
! grep -E 'would help, --echo ([5-9]|4\.[1-9]|[0-9]{2})' "$work/out" ||
	fail 'advice for more echoes than are worth it'
says 'slowest is' --batch 8 --no-hash --echo auto
! grep 'would help' "$work/out" || fail 'advice for a run with --echo auto'
says 'too short for a change' --batch 8 --echo auto
says 'a first change needs a run of [0-9]* fresh' --batch 8 --echo auto

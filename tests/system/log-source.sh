#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon's log of a source that fails, answers again and changes; no name of
# a file can forge a line.
set -u
name='log-source'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3
# shellcheck source=tests/system/log-lib.sh
. "$(dirname "$0")/log-lib.sh"

evil=$(printf 'evil\033[2J\nrefrain: error: forged')
head -c 5000 /dev/urandom >"$src/$evil"
mount_logged --fault '' --timeout 1
scan_through
must_log ': info: the source is listed: 21 files$'
refault 'error=1'
epoch && fail 'an epoch without a source'
must_log "warning: faults are injected on request: 'error=1'"
must_log "warning: a request for 'f[0-9]*' failed at the source: Input/output"
must_log "error: the source failed: gave up on 'f[0-9]*' after [0-9]* attempts*"
must_log "error: a reader of 'f[0-9]*' got an I/O error: "
refault ''
epoch || fail 'an epoch with the source back'
must_log 'notice: the source answers again; [0-9]* requests* given up'
must_not_log '^refrain: error: forged'
printf 'other' >"$src/f1.new" && mv "$src/f1.new" "$src/f1"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
must_log 'info: refreshed: [0-9]* names* changed, added'
stop_mount
must_not_log "$(printf '\033')"

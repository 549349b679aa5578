#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Reports to an operator about a store that fails, one incident after another.
# Each new cause and each change of state has its line in the log, whatever was
# written before. While a cause lasts, status shows it with its time. Each error
# that a reader gets is counted.
set -u
name='log-store'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/log-incidents-lib.sh
. "$(dirname "$0")/log-incidents-lib.sh"

# read_all FIRST LAST: read these files. Sets $failed to the number of those
# that cannot be read.
read_all() {
	# shellcheck disable=SC2016 # of the shell that runs it
	seq -f "$mnt/f%07.0f.bin" "$1" "$2" | xargs -n 1 -P 16 \
		sh -c 'cat "$1" >/dev/null 2>&1 || echo failed' x >"$work/lost"
	failed=$(wc -l <"$work/lost")
}

far_start files=200 size=5000
start_mount s3://many "$mnt" --endpoint-url "$far" \
	--cache "$work/far.tier:1M" --timeout 2 --log-file "$log"
scan_through
is_well
far_set code=500
read_all 0 7
expect 'reads that failed' "$failed" 8
must_log 'error: the source failed: gave up on'
must_show '^  errors .* ago, [0-9]+ times'
must_show '^ .*HTTP status is 500 \([0-9]+ s ago'
far_set code=0
read_all 8 9
expect 'reads that failed' "$failed" 0
must_log 'notice: the source answers again'
is_well
must_show '^  earlier .* ago'

# The second incident has another message.
before=$(status_field origin_failures)
got=$(status_field reader_errors)
far_set code=403
read_all 10 109
expect 'reads that failed' "$failed" 100
must_log 'error: the source refuses reads.*: Permission denied'
must_log 'cannot be used: .*(HTTP status 403)'
must_log "error: a reader of .*: Permission denied"
counted=$(($(status_field origin_failures) - before))
[ $counted -ge 100 ] || fail "$counted of 100 failures are counted"
counted=$(($(status_field reader_errors) - got))
[ $counted -ge 100 ] || fail "$counted errors of readers are counted"
must_show '^ .*HTTP status 403.* \([0-9]+ s ago, [0-9]+ times\)'
grep -q '^  errors' "$work/status" || fail '403 is no error'
"$refrain" status --json "$mnt" | tr '{' '\n' >"$work/json"
grep -q '"event": *"read-failed".*"errno": *13,.*"time": *"20.*Z"' \
	"$work/json" || fail "no cause in $(cat "$work/json")"
[ "$(status_field errors_present)" -ge 2 ] || fail 'no error is present'
"$refrain" status --prometheus "$mnt" |
	grep -q '^refrain_errors_present{' ||
	fail 'Prometheus gets no errors'
far_set code=0
read_all 110 111
must_log 'notice: the source answers again; [0-9]* requests' 2
is_well

# The third incident is like the first one, which has had all the lines that the
# limit allows.
far_set code=500
read_all 112 120
must_log 'error: the source failed: gave up on' 2
far_set code=0
read_all 121 122
must_log 'notice: the source answers again' 3
is_well
stop_mount

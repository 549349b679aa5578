#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What an operator gets to know of one incident after another: each new cause
# and each change of state has its line in the log, whatever was written before;
# each error that a reader gets is counted; status shows the causes that last,
# with their time, and no more when they have ended.
set -u
name=incidents
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse

log=$work/log

logged() {
	[ "$(grep -c -e "$1" "$log")" -ge "${2:-1}" ]
}

must_log() {
	wait_for 20 logged "$@" || {
		cat "$log"
		fail "not logged ${2:-1} times: $1"
	}
}

shows() {
	"$refrain" status "$mnt" >"$work/status" && grep -qE "$1" "$work/status"
}

must_show() {
	wait_for 20 shows "$1" || {
		cat "$work/status"
		fail "status does not show: $1"
	}
}

shows_no_error() {
	"$refrain" status "$mnt" >"$work/status" &&
		! grep -q '^  errors' "$work/status"
}

is_well() {
	wait_for 20 shows_no_error || {
		cat "$work/status"
		fail 'status shows an error that has ended'
	}
}

# read_all FIRST LAST: how many of the files cannot be read; in $failed.
read_all() {
	seq -f "$mnt/f%07.0f.bin" "$1" "$2" | xargs -n 1 -P 16 \
		sh -c 'cat "$1" >/dev/null 2>&1 || echo failed' x >"$work/lost"
	failed=$(wc -l <"$work/lost")
}

# -- A store -------------------------------------------------------------------

store_incidents() {
	rm -f "$log"
	far_start files=200 size=5000
	start_mount s3://many "$mnt" --endpoint-url "$far" \
		--cache "$work/far.tier:1M" --timeout 2 --log-file "$log"
	scan_through
	is_well
	far_set code=500
	read_all 0 7
	expect 'reads that failed' $failed 8
	must_log 'error: the source failed: gave up on'
	must_show '^  errors .* ago, [0-9]+ times'
	must_show '^ .*HTTP status is 500 \([0-9]+ s ago'
	far_set code=0
	read_all 8 9
	expect 'reads that failed' $failed 0
	must_log 'notice: the source answers again'
	is_well
	must_show '^  earlier .* ago'

	# The second: other words than before.
	before=$(status_field origin_failures)
	got=$(status_field reader_errors)
	far_set code=403
	read_all 10 109
	expect 'reads that failed' $failed 100
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

	# The third is as the first, of which more lines would be too many.
	far_set code=500
	read_all 112 120
	must_log 'error: the source failed: gave up on' 2
	far_set code=0
	read_all 121 122
	must_log 'notice: the source answers again' 3
	is_well
	stop_mount
}

# -- A tier --------------------------------------------------------------------

tier_incidents() {
	mkdir "$work/platter" "$work/disk" "$work/files"
	"$helpers/failing_fs" "$work/platter" "$work/disk" "$work/fails" &
	ends_with_test $!
	wait_for 10 mountpoint -q "$work/disk" || fail 'no disk that fails'
	i=0
	while [ $i -lt 200 ]; do
		head -c 20000 /dev/urandom >"$work/files/f$i"
		i=$((i + 1))
	done
	rm -f "$log"
	start_mount "$work/files" "$mnt" --cache "$work/disk/tier:25M" \
		--log-file "$log"
	scan_through
	next=0
	echo room >"$work/fails"
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		fails_again
	done
	must_log "error: cannot write to cache .*: No space left"
	must_show '^  errors +cannot write to cache .* ago'
	echo frozen >"$work/fails"
	fails_again
	must_log "error: cannot write to cache .*: Read-only file system"
	must_show '^ .*cannot write to cache .*: Read-only .* ago'
	rm "$work/fails"
	wait_for 20 works_again || fail 'the tier is not written to'
	must_log "notice: cache .* is writable again"
	is_well
	echo room >"$work/fails"
	fails_again
	must_log "error: cannot write to cache .*: No space left" 10
	rm "$work/fails"
	wait_for 20 works_again || fail 'the tier is not written to'
	must_log "notice: cache .* is writable again" 2
	is_well
	stop_mount
	umount "$work/disk" || fusermount3 -u "$work/disk"
}

read_next() {
	cat "$mnt/f$next" >/dev/null || fail "cannot read f$next"
	next=$(((next + 1) % 200))
	[ $next -gt 0 ] || drop_caches
}

error_grew() {
	read_next
	[ "$(status_field tier_errors)" -gt "$errors" ]
}

# Another write fails.
fails_again() {
	errors=$(status_field tier_errors)
	wait_for 20 error_grew || fail 'no write of the tier fails'
}

works_again() {
	read_next
	[ "$(status_field errors_present)" -eq 0 ]
}

# -- A source that hangs -------------------------------------------------------

hang() {
	rm -rf "$log" "$work/tier"
	head -c 20000 /dev/urandom >"$src/a"
	cp "$src/a" "$src/b"
	cp "$src/a" "$src/c"
	start_mount "$src" "$mnt" --cache "$work/tier:1M" --fault ''
	scan_through
	"$refrain" fault "$mnt" 'stall=1' || fail 'cannot set the fault'
	for f in a b c; do
		cat "$mnt/$f" >/dev/null &
		ends_with_test $!
	done
	# Several looks at this machine's pace are no delay of the daemon's.
	began=$(date +%s%3N)
	"$refrain" status "$mnt" >"$work/status" || fail 'no status'
	look=$(($(date +%s%3N) - began))
	silent='the source has not answered for [0-9]+ s'
	must_show "^  errors +$silent, [1-3] reader"
	took=$(($(date +%s%3N) - began))
	note "a hang is shown after $took ms"
	[ $took -lt $((3000 * patience + 10 * look)) ] ||
		fail "shown after $took ms"
	must_show 'not answered for [0-9]+ s, 3 readers wait$'
	must_show 'not answered for ([2-9]|[1-9][0-9]+) s'
	"$refrain" fault "$mnt" '' || fail 'cannot set the fault'
	is_well
	wait_for 20 has_status parked 0 || fail 'readers still wait'
	expect 'the silence of a source that answers' \
		"$(status_field origin_silent_ms)" 0
	stop_mount
}

hang
tier_incidents
[ -x tests/system/far ] || {
	note 'built without http and s3'
	exit 0
}
command -v curl >/dev/null || skip 'needs curl'
store_incidents

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Reports to an operator about a tier that cannot be written, one incident after
# another. Each new cause and each change of state has its line in the log,
# whatever was written before. While a cause lasts, status shows it with its
# time.
set -u
name='log-tier'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse
# shellcheck source=tests/system/log-incidents-lib.sh
. "$(dirname "$0")/log-incidents-lib.sh"

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

mkdir "$work/platter" "$work/disk" "$work/files"
"$helpers/failing_fs" "$work/platter" "$work/disk" "$work/fails" &
ends_with_test $!
wait_for 10 mountpoint -q "$work/disk" || fail 'no disk that fails'
i=0
while [ $i -lt 200 ]; do
	head -c 20000 /dev/urandom >"$work/files/f$i"
	i=$((i + 1))
done
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

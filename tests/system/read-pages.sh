#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The limit on kernel pages of files that are not cached: the oldest pages are
# dropped, but nothing waits for pages that are locked by a reader that waits
# for the daemon. If the daemon is killed then, it ends at once, and the reader
# gets an error.
set -eu
name=pages
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount fincore

for f in held other third; do
	head -c 110000 /dev/urandom >"$src/$f"
done

pages() {
	fincore --bytes --noheadings --output RES "$mnt/$1" | tr -d ' '
}

dropped_since() {
	[ "$(drops)" != "$1" ]
}

# No file has room in the cache, and the kernel may keep the pages of one. If
# another program drops the caches of the machine meanwhile, which shows in a
# counter, the test is repeated.
while :; do
	start_mount "$src" "$mnt" --cache "$work/cache:64K" --pages 150K \
		--fault ''
	scan_through
	drops_before=$(drops)
	cat "$mnt/other" "$mnt/held" >/dev/null
	wait_for 10 has_status pages_dropped 110000 ||
		fail "dropped: $(status_field pages_dropped)"
	expect 'pages of the oldest' "$(pages other)" 0
	[ "$(pages held)" -lt 110000 ] || break
	wait_for 5 dropped_since "$drops_before" ||
		fail 'the latest has lost its pages'
	note 'the caches were dropped; again'
	stop_mount
done
wait_for 10 has_status staging_bytes 0 || fail 'what was served is kept'

# The pages of `held` are locked for a second reader when they should be
# dropped.
drop_caches
expect 'pages after the caches were dropped' "$(pages held)" 0
"$refrain" fault "$mnt" stall=1,match=held
cat "$mnt/held" >/dev/null 2>&1 &
second=$!
wait_for 10 has_status parked 1 || fail 'the second read is not parked'
cat "$mnt/third" >/dev/null
wait_for 10 has_status pages_dropped 220000 || fail 'a page is waited for'

kill -9 "$daemon"
# threads_gone: has only the first thread, a zombie, remained?
threads_gone() {
	set -- /proc/"$daemon"/task/*
	[ $# -le 1 ]
}
wait_for 10 threads_gone || fail 'the killed daemon stays in the kernel'
wait "$second" && fail 'the second reader was answered'
wait "$daemon" 2>/dev/null || :
daemon=

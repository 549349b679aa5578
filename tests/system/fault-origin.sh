#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An origin that delays, fails and cuts short, and an origin on a file system
# that does so itself. Readers get the right bytes as long as retries help.
# Otherwise only the readers of unreadable files get EIO, within a limited time.
set -eu
name=faulty-origin
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum

timeout_s=2

# at_least FIELD N
at_least() {
	[ "$(status_field "$1")" -ge "$2" ] ||
		fail "$1 is $(status_field "$1"), below $2"
}

# fails_in_time FILE: check that reading ends with EIO within twice the
# time-out, because the kernel reads again, page by page, what it could not read
# ahead.
fails_in_time() {
	begin=$(date +%s)
	if LC_ALL=C cat "$mnt/$1" >"$work/got" 2>"$work/cat.err"; then
		fail "$1 can be read"
	fi
	grep -q 'Input/output error' "$work/cat.err" ||
		fail "not EIO: $(cat "$work/cat.err")"
	took=$(($(date +%s) - begin))
	[ $took -le $((2 * timeout_s * patience + 2)) ] ||
		fail "EIO only after $took s"
}

# others_read: check that other files can be read meanwhile, cached or not.
others_read() {
	drop_caches
	"$reader" "$mnt" --threads 4 --files-from "$work/good" \
		--sums "$work/good.fast" --seed "$1" >"$work/reader.$1" 2>&1
}

# unreadable SPEC: inject SPEC for one file, and check the readers until the
# fault ends.
unreadable() {
	"$refrain" fault "$mnt" "$1"
	others_read 1 &
	others=$!
	fails_in_time "$bad"
	wait $others || fail "$1: others fail: $(cat "$work/reader.1")"
	daemon_gone && fail "$1: the daemon has gone"
	"$refrain" fault "$mnt" ''
	cmp "$src/$bad" "$mnt/$bad" || fail "$1: no recovery"
}

make_tree "$src" 21 240 1000000
bad=d1/e1/f00001
bad2=d2/e2/f00002
for f in $bad $bad2; do
	head -c 700000 /dev/urandom >"$src/$f"
done
(cd "$src" && find . -type f -printf '%P\n') |
	grep -vx -e $bad -e $bad2 >"$work/good"
(cd "$src" && xargs -d '\n' sha256sum) <"$work/good" >"$work/good.sums"
"$reader" "$src" --make-sums "$work/fast.sums" >/dev/null
"$reader" "$src" --files-from "$work/good" --make-sums "$work/good.fast" \
	>/dev/null
all=$(tree_bytes "$src")

# -- Trying again helps ------------------------------------------------------

start_mount "$src" "$mnt" --cache "$work/cache:100M" --timeout 60 \
	--fault delay=5ms,error=0.05,short=0.05,seed=5
"$reader" "$mnt" --threads 16 --sums "$work/fast.sums" >/dev/null ||
	fail 'an epoch from a faulty origin fails'
at_least origin_errors 5
at_least origin_retries 5
expect failures "$(status_field origin_failures)" 0
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
note "$(status_field origin_errors) errors and" \
	"$(status_field origin_retries) retries for" \
	"$(status_field origin_reads) reads"
drop_caches
sums_right "$work/good.sums" "$mnt"
expect 'resident bytes' "$(status_field resident_bytes)" "$all"
stop_mount

# -- It does not -------------------------------------------------------------

start_mount "$src" "$mnt" --cache "$work/cache.2:100M" \
	--timeout $timeout_s --fault ''
scan_through
unreadable error=1,match=$bad
at_least origin_failures 1
note "EIO after $took s of $timeout_s s"
bad=$bad2
unreadable stall=1,match=$bad
note "EIO after $took s of $timeout_s s, when nothing is answered"
at_least origin_timeouts 1
expect 'parked reads' "$(status_field parked)" 0
expect 'resident bytes' "$(status_field resident_bytes)" "$all"
stop_mount

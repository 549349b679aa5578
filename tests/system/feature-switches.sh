#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every probed feature has a switch (R9). Without any one of the features, or
# without all, the mount does the same: a cold and a cached epoch have the right
# bytes, each byte is read from the origin once, and all names are shown.
set -eu
name=switches
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum

make_tree "$src" 51 150 200000
head -c 2500000 /dev/urandom >"$src/large"
ln -s d1/e1 "$src/link"
(cd "$src" && find . -printf '%P %y %s %l\n' | grep -v ' d ' | sort) \
	>"$work/names"
(cd "$src" && find . -type f -print0 | xargs -0 sha256sum) >"$work/sums"
"$reader" "$src" --make-sums "$work/fast.sums" >/dev/null
all=$(tree_bytes "$src")

uses_uring() {
	find "/proc/$daemon/fd" -lname 'anon_inode:*io_uring*' | grep -q .
}

asks_opens() {
	"$refrain" status "$mnt" | grep -q 'sends a request for every open'
}

# epochs WHAT: read a cold and a cached epoch.
epochs() {
	"$reader" "$mnt" --threads 6 --sums "$work/fast.sums" \
		>"$work/reader" 2>&1 || fail "$1: $(cat "$work/reader")"
	expect "$1: bytes from the origin" \
		"$(status_field origin_bytes)" "$all"
	expect "$1: resident bytes" "$(status_field resident_bytes)" "$all"
	drop_caches
	sums_right "$work/sums" "$mnt"
	(cd "$mnt" && find . -printf '%P %y %s %l\n' | grep -v ' d ' | sort) |
		diff "$work/names" - || fail "$1: other names"
	expect "$1: bytes from the origin later" \
		"$(status_field origin_bytes)" "$all"
	expect "$1: evictions" "$(status_field evictions)" 0
	expect "$1: errors of the origin" "$(status_field origin_errors)" 0
	expect "$1: errors of the tier" "$(status_field tier_errors)" 0
}

has_uring=
for off in none io_uring direct_io tmpfile stateless_open readdirplus \
	busy_poll at_once all; do
	REFRAIN_DISABLE=$off
	export REFRAIN_DISABLE
	start_mount "$src" "$mnt" --cache "$work/cache.$off:200M" --limit 1M
	epochs $off
	# Check that the switch has an effect.
	case $off in
	none)
		! uses_uring || has_uring=1
		! asks_opens || skip 'this kernel has no stateless opens'
		;;
	io_uring) ! uses_uring || fail 'io_uring in spite of the switch' ;;
	stateless_open) asks_opens || fail 'stateless in spite of the switch' ;;
	all)
		! uses_uring || fail 'io_uring in spite of the switch'
		asks_opens || fail 'stateless in spite of the switch'
		;;
	esac
	[ -z "$has_uring" ] || [ $off = io_uring ] || [ $off = all ] ||
		uses_uring || fail "$off: no io_uring"
	stop_mount
	"$refrain" verify "$work/cache.$off" >"$work/verified" ||
		fail "$off: $(cat "$work/verified")"
	rm -rf "$work/cache.$off"
done
[ -n "$has_uring" ] || note 'this kernel has, or lets us, no io_uring'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# R7: one allocation after another fails while a mount starts. It either comes
# up all the same, and serves right bytes, or says in one line why not, and
# leaves nothing behind. The holder of a mount would start it again, so there is
# none. NO_MEMORY_STEP: every how-manieth allocation is tried.
set -eu
name=no-memory
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse nm

step=${NO_MEMORY_STEP:-7}
last=${NO_MEMORY_LAST:-600}
shim=$PWD/tests/system/.libs/no_memory.so
[ -e "$shim" ] || skip "$shim is not built"
case $(nm -D "$refrain" 2>/dev/null) in
*__asan* | *__tsan*) skip 'a sanitizer has an allocator of its own' ;;
esac

mkdir "$src/sub"
echo one >"$src/a"
echo two >"$src/sub/b"
want=$(cat "$src/a" "$src/sub/b")

# A read can meet the failure itself: then the next one is right.
read_both() {
	got=$(cat "$mnt/a" "$mnt/sub/b" 2>/dev/null) || got=$(
		cat "$mnt/a" "$mnt/sub/b"
	) || return 1
	[ "$got" = "$want" ]
}

check_refusal() {
	[ "$(wc -l <"$work/err")" -eq 1 ] ||
		fail "not one line at $at: $(cat "$work/err")"
	grep -q '^refrain: ' "$work/err" ||
		fail "no name at $at: $(cat "$work/err")"
	! grep -q 'died' "$work/err" || fail "it died at $at"
	[ -z "$(mounts_below "$work")" ] || fail "a mount is left at $at"
	[ ! -e "$short/cache" ] || fail "a cache is left at $at"
}

at=1
served=0
refused=0
while [ "$at" -le "$last" ]; do
	rm -rf "$short/cache"
	if FAIL_AT=$at LD_PRELOAD=$shim "$refrain" mount "$src" "$mnt" \
		--no-hold --cache "$short/cache:1M" 2>"$work/err"; then
		read_both || fail "wrong bytes after failure $at"
		"$refrain" umount "$mnt" || fail "no umount after failure $at"
		served=$((served + 1))
	else
		check_refusal
		refused=$((refused + 1))
	fi
	at=$((at + step))
done
note "$refused starts refused, $served came up"
[ "$refused" -gt 5 ] || fail 'hardly any allocation failed'
[ "$served" -gt 5 ] || fail 'the last allocation tried is of the start'

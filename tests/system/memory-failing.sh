#!/bin/sh
# SPDX-License-Identifier: MIT
#
# R7: one allocation after another fails while a mount starts. The mount either
# works, and serves the right bytes, or reports the reason in one line and
# leaves nothing behind. It has no holder, because a holder would start the
# daemon again. With NO_MEMORY_STEP=N, only every N-th allocation fails.
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

# The failing allocation may be in a read. Then the next read is right.
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

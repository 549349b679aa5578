#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the steps of README's installation on a temporary copy of /usr and /etc:
# `mount -t refrain` works, and so does a program that was built against the
# installed library.
set -u
name=install
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse pkg-config cc

! ldd "$refrain" | grep -q -e libasan -e libtsan ||
	skip 'the library of a sanitizer has to come first'
case $(sed -n 's/^prefix = //p' Makefile) in
/usr | /usr/local) ;;
*) skip 'neither in /usr nor in /usr/local, where the system looks' ;;
esac
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
mount -t tmpfs tmpfs "$work/src" 2>/dev/null || skip 'cannot mount a tmpfs'
for dir in usr etc; do
	mkdir "$work/src/$dir" "$work/src/$dir.work"
	mount -t overlay overlay -o "lowerdir=/$dir,upperdir=$work/src/$dir" \
		-o "workdir=$work/src/$dir.work" "/$dir" 2>/dev/null ||
		skip 'cannot mount an overlay'
done

make -s install sbindir=/sbin >"$work/said" 2>&1 ||
	fail "make install: $(tail -n 5 "$work/said")"
ldconfig || fail 'ldconfig'
data=$work/data
"$refrain" make-dataset "$data" --classes 2 --images 40 --size 64x64 \
	>/dev/null || fail 'cannot make a dataset'
mount -t refrain "$data" "$mnt" -o "cache=$work/cache:10M" ||
	fail 'mount -t refrain'
daemon=$(status_field pid)
flags=$(pkg-config --cflags --libs refrain) || fail 'no refrain.pc'
# shellcheck disable=SC2086 # a list of words
cc "${srcdir:-.}/examples/minimal.c" -o "$work/minimal" \
	$flags || fail 'cannot build a program'
(cd / && env -u LD_LIBRARY_PATH "$work/minimal" "$mnt") >"$work/said" 2>&1 ||
	fail "the program: $(cat "$work/said")"
[ "$(status_field misses)" -gt 0 ] || fail 'nothing was read of the mount'
umount "$mnt" || fail 'cannot unmount'
wait_for 20 daemon_gone || fail 'the daemon does not end'
daemon=
make -s uninstall sbindir=/sbin >/dev/null 2>&1 || fail 'make uninstall'
for left in /sbin/mount.refrain /usr/local/bin/refrain; do
	[ ! -e $left ] || fail "uninstalling leaves $left"
done

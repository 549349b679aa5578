#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `make dist` always makes the same archive: from this tree, by another user in
# another time zone, and from the archive itself, in another place and with a
# new configure. `make check-packages` runs this.
set -eu
work=$(mktemp -d "$PWD/package-dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() {
	tail -n 20 "$work/log" 2>/dev/null || :
	echo "FAILED: $*"
	exit 1
}
for program in autoreconf libtoolize xz; do
	command -v $program >/dev/null || {
		echo "skipped: needs $program"
		exit 77
	}
done

# dist_to FILE VARIABLE=VALUE ...: run `make dist` in the current directory.
dist_to() {
	to=$1
	shift
	env "$@" make -s dist-xz >"$work/log" 2>&1 || fail 'make dist-xz'
	mv refrain-*.tar.xz "$to"
}

umask 022
dist_to "$work/1" TZ=UTC LC_ALL=C
umask 002
dist_to "$work/2" TZ=Asia/Tokyo LC_ALL=C.UTF-8
cmp "$work/1" "$work/2" || fail 'made twice, it differs'

mkdir -p "$work/another/place"
cd "$work/another/place"
tar -xf "$work/1"
cd refrain-*
umask 027
{ autoreconf -fi && mkdir build && cd build && ../configure -q; } \
	>"$work/log" 2>&1 || fail 'configure of the archive'
dist_to "$work/3" TZ=America/New_York LC_ALL=C
cmp "$work/1" "$work/3" || fail 'made from the archive, it differs'

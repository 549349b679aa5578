# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # variables come and go by it
#
# Roots of Debian for tests that sourced lib.sh. REFRAIN_ROOTS is a directory
# that keeps them between runs.

# make_debian FILE PACKAGE,...: make a tarball of a Debian of the host's
# release.
make_debian() {
	find /etc/apt/sources.list /etc/apt/sources.list.d \
		\( -name '*.list' -o -name '*.sources' \) -size +0 \
		>"$work/sources" 2>/dev/null || :
	[ -s "$work/sources" ] || skip 'the host has no package source'
	# shellcheck disable=SC2046 # the names of the host's files
	mmdebstrap --variant=minbase \
		${2:+--include="$2"} \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" \
		"$1.part" $(cat "$work/sources") --format=tar \
		>"$work/mmdebstrap.log" 2>&1 || {
		tail -n 3 "$work/mmdebstrap.log"
		skip 'no root could be made: is there a mirror of Debian?'
	}
	mv "$1.part" "$1"
}

# debian_with FILE: set $debian to the tarball of a Debian with the packages
# that FILE lists, one in each line.
debian_with() {
	sum=$(sha256sum <"$1" | cut -c 1-8)
	debian=${REFRAIN_ROOTS:-$work}/debian-packages-$sum.tar
	[ -s "$debian" ] || make_debian "$debian" "$(tr '\n' ',' <"$1")"
}

# unpack_debian DIR
unpack_debian() {
	mkdir "$1"
	tar -xf "$debian" -C "$1" --exclude='./dev/*' || fail 'tar'
	ln -sf ../proc/self/mounts "$1/etc/mtab"
}

# live_in ROOT KIND: run package_life.sh in ROOT for packages of KIND, as the
# first process of a PID namespace, so that all processes end with it. $work/log
# has its output.
live_in() {
	mkdir -p "$1/tests/tests/system" "$1/srv/data"
	cp "${srcdir:-.}/tests/system/package_life.sh" \
		"${srcdir:-.}/tests/system/survive.py" \
		"${srcdir:-.}/tests/system/holder.py" \
		"$helpers/status_field" "$helpers/read_ways" "$1/tests/tests/system"
	make_tree "$1/srv/data" 3 120 400000
	mkdir "$1/srv/data/many"
	(cd "$1/srv/data/many" && seq -f 'n%05.0f' 300 | xargs touch)
	cat >"$work/enter" <<'END'
set -eu
cd "$1"
mount --bind . . && cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
# Everybody may open /dev/fuse, as udev makes it; the host may have no udev.
mount -t tmpfs tmpfs run
mknod -m 666 run/fuse c 10 229 && mount --bind run/fuse dev/fuse
mkdir old && pivot_root . old
cd /
umount -l /old && rmdir /old
exec sh /tests/tests/system/package_life.sh "$2"
END
	unshare -mpf --kill-child sh "$work/enter" "$1" "$2" </dev/null \
		>"$work/log" 2>&1 && grep '^== ' "$work/log" &&
		tail -n 1 "$work/log" | grep -qx '== nothing is left'
}

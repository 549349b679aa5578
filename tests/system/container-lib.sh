# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# Containers of podman, without a network, for tests that sourced lib.sh. Makes
# $root, a Debian with systemd in which this build is installed.
#
# REFRAIN_ROOTS is a directory that keeps the Debian between runs. Without it,
# each run makes one from the host's package source, which takes minutes.

# shellcheck source=tests/system/podman-lib.sh
. "${srcdir:-.}/tests/system/podman-lib.sh"
requires python3
root=$work/root

make_root() {
	debian=${REFRAIN_ROOTS:-$work}/debian-systemd.tar
	[ -s "$debian" ] || make_debian "$debian" \
		systemd,systemd-sysv,fuse3,python3
	mkdir "$root"
	tar -xf "$debian" -C "$root" --exclude='./dev/*' || fail 'tar'
	make -s install DESTDIR="$root" >"$work/said" 2>&1 ||
		fail "make install: $(tail -n 5 "$work/said")"
	cp "$helpers/status_field" "$helpers/read_ways" "$here/survive.py" \
		"$here/holder.py" "$root/usr/local/bin"
	# Libraries of the host's release, as its packages have them.
	ldd "$refrain" "$helpers/status_field" "$helpers/read_ways" |
		awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
		while read -r lib; do
			[ -e "$root$lib" ] || install -D "$lib" "$root$lib"
		done
}

make_root
bin=$(sed -n 's/^prefix = //p' Makefile)/bin

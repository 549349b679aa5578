# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables come and go by it
#
# Containers of podman, without a network, for tests that sourced lib.sh. Makes
# $root, a Debian with systemd in which this build is installed.
#
# REFRAIN_ROOTS is a directory that keeps the Debian between runs. Without it,
# each run makes one from the host's package source, which takes minutes.

requires root fuse python3 podman mmdebstrap ldd
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
! ldd "$refrain" | grep -q -e libasan -e libtsan ||
	skip 'daemons of a sanitizer are slow to start'
here=$(cd "${srcdir:-.}/tests/system" && pwd)
root=$work/root

# crun refuses a tree of groups of both versions.
! grep -q ' /sys/fs/cgroup/unified ' /proc/self/mountinfo ||
	umount /sys/fs/cgroup/unified || skip 'cannot unmount a control group'

# No limit above ours: root may lack the right to raise one.
CONTAINERS_CONF=$work/containers.conf
export CONTAINERS_CONF
cat >"$CONTAINERS_CONF" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
END

# Copies of images take long, where there can be layers.
driver=vfs
mkdir "$work/lower" "$work/upper" "$work/over"
if mount -t overlay overlay "$work/over" \
	-o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/over" \
	2>/dev/null; then
	umount "$work/over"
	driver=overlay
fi

pod() {
	podman --root "$work/storage" --runroot "$short/pod" \
		--storage-driver $driver "$@"
}

before_cleanup() {
	pod rm --all --force --time 0 >/dev/null 2>&1 || :
}

# A tarball of a Debian of the host's release.
make_debian() {
	find /etc/apt/sources.list /etc/apt/sources.list.d \
		\( -name '*.list' -o -name '*.sources' \) -size +0 \
		>"$work/sources" 2>/dev/null || :
	[ -s "$work/sources" ] || skip 'the host has no package source'
	# shellcheck disable=SC2046 # the names of the host's files
	mmdebstrap --variant=minbase \
		--include=systemd,systemd-sysv,fuse3,python3 \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" \
		"$1.part" $(cat "$work/sources") --format=tar \
		>"$work/mmdebstrap.log" 2>&1 || {
		tail -n 3 "$work/mmdebstrap.log"
		skip 'no root could be made: is there a mirror of Debian?'
	}
	mv "$1.part" "$1"
}

make_root() {
	debian=${REFRAIN_ROOTS:-$work}/debian-systemd.tar
	[ -s "$debian" ] || make_debian "$debian"
	mkdir "$root"
	tar -xf "$debian" -C "$root" --exclude='./dev/*' || fail 'tar'
	make -s install DESTDIR="$root" >"$work/said" 2>&1 ||
		fail "make install: $(tail -n 5 "$work/said")"
	cp "$helpers/status_field" "$helpers/read_ways" "$here/survive.py" \
		"$root/usr/local/bin"
	# Libraries of the host's release, as its packages have them.
	ldd "$refrain" "$helpers/status_field" "$helpers/read_ways" |
		awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
		while read -r lib; do
			[ -e "$root$lib" ] || install -D "$lib" "$root$lib"
		done
}

make_root
bin=$(sed -n 's/^prefix = //p' Makefile)/bin

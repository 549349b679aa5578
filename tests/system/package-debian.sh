#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The packages for Debian. lintian has nothing to say; each has the files that
# it promises; a second build, elsewhere, makes the same bytes; and in a new
# root they are installed, tested, upgraded under programs that read a mount,
# and purged (package_life.sh). `make check-packages` runs this; it takes about
# ten minutes.
#
# REFRAIN_ROOTS is a directory that keeps the Debian of the root between runs,
# REFRAIN_DEBS one with packages that are there: nothing is built.
set -eu
name='package-debian'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse dpkg-buildpackage dh dh_python3 lintian mmdebstrap pivot_root
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "${srcdir:-$here/../..}" && pwd)
[ -f "$top/debian/control" ] || skip 'an archive has no debian/'
(cd "$top" && dpkg-checkbuilddeps 2>"$work/log") ||
	skip "$(tail -n 1 "$work/log")"
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

gives_up() {
	tail -n 30 "$work/log"
	fail "$*"
}

# packages_in DIR: without those of symbols for debuggers.
packages_in() {
	find "$1" -name '*.deb' ! -name '*-dbgsym_*' | sort
}

# -- One build, and another one that differs in all that must not matter -------

build_twice() {
	make -s debs >"$work/log" 2>&1 || gives_up 'make debs'
	other=$work/another-place/of-a-longer-name
	mkdir -p "$other"
	build_elsewhere || gives_up 'the second build'
	for file in "$debs"/*.deb; do
		cmp "$file" "$other/${file##*/}" ||
			fail "builds differ: ${file##*/}"
	done
	note 'two builds have made the same packages'
}
build_elsewhere() (
	umask 027
	cd "$other" &&
		dpkg-source --no-check -x "$debs"/*.dsc >"$work/log" 2>&1 &&
		cd refrain-* || exit
	# shellcheck disable=SC2016 # for the shell below
	env -i PATH="$PATH" HOME=/nonexistent USER=another TZ=Asia/Tokyo \
		LANG=C.UTF-8 LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS=nocheck \
		unshare --uts sh -c 'hostname another &&
			exec dpkg-buildpackage -us -uc -j"$(nproc)"' \
		>"$work/log" 2>&1
)
debs=${REFRAIN_DEBS:-$PWD/debs}
[ -n "${REFRAIN_DEBS:-}" ] || build_twice

# -- What they are -------------------------------------------------------------

lintian --no-cfg --allow-root --fail-on error,warning "$debs"/*.changes \
	>"$work/log" 2>&1 || gives_up 'lintian'

for deb in $(packages_in "$debs"); do
	package=$(dpkg-deb -f "$deb" Package)
	dpkg-deb --fsys-tarfile "$deb" | tar -tf - | grep -v '/$' |
		sed -e 's|^\.||' -e "s|/$triplet/|/TRIPLET/|" \
			-e "s|^|$package |"
done | grep -v ' /usr/share/doc/refrain/doc/' | LC_ALL=C sort >"$work/files"
LC_ALL=C sort "$here/package_files" | diff - "$work/files" >"$work/log" ||
	gives_up 'other files than promised (<), or more (>)'

# -- A root --------------------------------------------------------------------

root=$work/root
for deb in $(packages_in "$debs"); do
	dpkg-deb -f "$deb" Depends | tr ',' '\n'
done | sed -e 's/^ *//' -e 's/[ :|(].*//' | grep -v -e '^$' -e refrain |
	sort -u >"$work/depends"
printf '%s\n' dpkg-dev gcc libc6-dev pkg-config >>"$work/depends"

# make_debian TARBALL
make_debian() {
	find /etc/apt/sources.list /etc/apt/sources.list.d \
		\( -name '*.list' -o -name '*.sources' \) -size +0 \
		>"$work/sources" 2>/dev/null || :
	[ -s "$work/sources" ] || skip 'the host has no package source'
	# shellcheck disable=SC2046 # the names of the host's files
	mmdebstrap --variant=minbase \
		--include="$(tr '\n' ',' <"$work/depends")" \
		"$(. /etc/os-release && echo "$VERSION_CODENAME")" \
		"$1.part" $(cat "$work/sources") --format=tar \
		>"$work/log" 2>&1 || {
		tail -n 3 "$work/log"
		skip 'no root could be made: is there a mirror of Debian?'
	}
	mv "$1.part" "$1"
}
sum=$(sha256sum <"$work/depends" | cut -c 1-8)
debian=${REFRAIN_ROOTS:-$work}/debian-packages-$sum.tar
[ -s "$debian" ] || make_debian "$debian"
mkdir "$root"
tar -xf "$debian" -C "$root" --exclude='./dev/*' || fail 'tar'
ln -sf ../proc/self/mounts "$root/etc/mtab"

# -- Three versions ------------------------------------------------------------

version=$(dpkg-parsechangelog -S Version -l "$top/debian/changelog")
unpack() {
	for deb in $(packages_in "$debs"); do
		package=$(dpkg-deb -f "$deb" Package)
		dpkg-deb -R "$deb" "$work/$1/$package"
		sed -i "s/$version/$version.$1/" \
			"$work/$1/$package/DEBIAN/control"
	done
}
pack() {
	mkdir -p "$root/debs/$1"
	for package in "$work/$1"/*; do
		dpkg-deb --root-owner-group -b "$package" "$root/debs/$1" \
			>"$work/log" 2>&1 || gives_up 'dpkg-deb'
	done
}
for v in 1 2 3; do
	mkdir "$work/$v"
	unpack $v
	[ $v != 3 ] || cat >"$work/3/refrain/usr/bin/refrain" <<'END'
#!/bin/sh
echo 'this program does nothing' >&2
exit 1
END
	pack $v
done

# -- Their life ----------------------------------------------------------------

mkdir -p "$root/tests/debian" "$root/tests/tests/system" "$root/srv/data"
cp "$here/package_life.sh" "$here/survive.py" "$helpers/status_field" \
	"$helpers/read_ways" "$root/tests/tests/system"
cp -R "$top/debian/tests" "$root/tests/debian"
make_tree "$root/srv/data" 3 120 400000
mkdir "$root/srv/data/many"
(cd "$root/srv/data/many" && seq -f 'n%05.0f' 300 | xargs touch)

# All that runs there ends with its process 1.
cat >"$work/enter" <<'END'
set -eu
cd "$1"
mount --bind . . && cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
# For everybody, as udev makes it; the host may have no udev.
mount -t tmpfs tmpfs run
mknod -m 666 run/fuse c 10 229 && mount --bind run/fuse dev/fuse
mkdir old && pivot_root . old
cd /
umount -l /old && rmdir /old
exec sh /tests/tests/system/package_life.sh
END
unshare -mpf --kill-child sh "$work/enter" "$root" </dev/null \
	>"$work/log" 2>&1 || gives_up 'in the root'
grep '^== ' "$work/log"
tail -n 1 "$work/log" | grep -qx '== nothing is left' ||
	gives_up 'it ended early'

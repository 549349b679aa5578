#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The packages for Debian. lintian finds nothing; each package has its files; a
# second build by reprotest makes the same bytes; autopkgtest passes; and in a
# new root the packages are installed, upgraded while programs read a mount, and
# purged (package_life.sh). `make check-packages` runs this; it takes about ten
# minutes.
#
# REFRAIN_ROOTS is a directory that keeps the Debian root between runs.
# REFRAIN_DEBS is a directory with built packages, so that nothing is built.
set -eu
name='package-debian'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/root-lib.sh
. "${srcdir:-.}/tests/system/root-lib.sh"
requires root fuse dpkg-buildpackage dh dh_python3 lintian mmdebstrap
requires pivot_root autopkgtest localedef
[ -n "${REFRAIN_DEBS:-}" ] || requires reprotest disorderfs faketime
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

# packages_in DIR: list the packages, without those with debugging symbols.
packages_in() {
	find "$1" -name '*.deb' ! -name '*-dbgsym_*' | sort
}

# -- One build, and another one that differs in all that must not matter -------

build_twice() {
	make -s debs >"$work/log" 2>&1 || gives_up 'make debs'
	# reprotest expects the source folder beside the packages.
	mkdir -p "$work/first/source-root"
	cp "$debs"/*.deb "$work/first"
	build_elsewhere || gives_up 'the second build'
	grep -qx 'Reproduction successful' "$work/log" ||
		gives_up 'the second build says nothing'
	note 'two builds have made the same packages'
}

# build_elsewhere: vary everything that reprotest can vary except the user: for
# the user it calls `sudo -h localhost`, which sudo refuses since its fix of
# CVE-2025-32462. Nothing that was compiled before is used, and the tests are
# not run again.
build_elsewhere() {
	mkdir "$work/locales" "$work/dsc"
	localedef -i et_EE -f UTF-8 "$work/locales/et_EE.UTF-8" \
		>"$work/log" 2>&1 || return
	(cd "$work/dsc" && dpkg-source --no-check -x "$debs"/*.dsc) \
		>"$work/log" 2>&1 || return
	chmod a+x "$work"
	CCACHE_DISABLE=1 LOCPATH=$work/locales DEB_BUILD_OPTIONS=nocheck \
		TMPDIR=$work reprotest --no-diffoscope \
		--variations=+all,-user_group --control-build "$work/first" \
		--source-root "$work"/dsc/refrain-* \
		'dpkg-buildpackage --no-sign -b' '../*.deb' \
		-- null >"$work/log" 2>&1
}
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
sed -n 's/^Depends: //p' "$top/debian/tests/control" | tr -d ' ' | tr , '\n' |
	grep -v refrain >>"$work/depends"
# autopkgtest needs these.
printf '%s\n' apt-utils dpkg-dev >>"$work/depends"

debian_with "$work/depends"

# -- The tests that come with them ---------------------------------------------

# autopkgtest installs the packages in a root and runs their tests. Everybody
# may open /dev/fuse, as udev makes it.
cat >"$work/autopkgtest" <<'END'
set -eu
work=$1
root=$work/test-root
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mknod -m 666 "$root/run/fuse" c 10 229
mount --bind "$root/run/fuse" "$root/dev/fuse"
shift
exec autopkgtest --output-dir "$work/tests" --summary-file "$work/summary" \
	--no-built-binaries "$@" -- chroot "$root"
END
unpack_debian "$work/test-root"
# shellcheck disable=SC2046 # a list of files
unshare -mpf --kill-child sh "$work/autopkgtest" "$work" \
	$(packages_in "$debs") "$debs"/*.dsc </dev/null >"$work/log" 2>&1 ||
	gives_up 'autopkgtest'
sed 's/^/== autopkgtest: /' "$work/summary"
expect 'tests that pass' "$(grep -c ' PASS$' "$work/summary")" \
	"$(sed -n 's/^Tests: //p' "$top/debian/tests/control" | wc -w)"
rm -rf "$work/test-root"

unpack_debian "$root"

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
	mkdir -p "$root/packages/$1"
	for package in "$work/$1"/*; do
		dpkg-deb --root-owner-group -b "$package" "$root/packages/$1" \
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

live_in "$root" deb || gives_up 'in the root'

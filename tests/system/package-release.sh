#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `make release` and `make release-check`: a good release of small packages is
# accepted, and a release that is damaged or has a mistake is refused with a
# line that says why (package_release.py). The same is checked with the real
# packages. `make check-packages` runs this.
#
# The packages in REFRAIN_DEBS or debs/ are used if they were built from this
# tree. Otherwise they are built. REFRAIN_REBUILD=1 builds them once more, and
# compares.
set -eu
work=$(mktemp -d "$PWD/package-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
here=$top/tests/system
fail() {
	tail -n 20 "$work/log" 2>/dev/null || :
	echo "FAILED: $*"
	exit 1
}
for program in minisign python3 gcc; do
	command -v $program >/dev/null || {
		echo "skipped: needs $program"
		exit 77
	}
done
command -v dpkg-deb >/dev/null || {
	echo 'skipped: needs dpkg-deb'
	exit 77
}

mkdir "$work/small"
python3 "$here/package_release.py" "$top/build-aux/release" "$work/small"

# -- Of the real packages -----------------------------------------------------

[ -f "$top/debian/control" ] || {
	echo 'skipped: an archive has no debian/'
	exit 77
}
(cd "$top" && dpkg-checkbuilddeps 2>"$work/log") || {
	echo "skipped: $(tail -n 1 "$work/log")"
	exit 77
}
# The key is used by this test only.
minisign -G -W -p "$work/key.pub" -s "$work/key" >/dev/null
folder=$work/release

# release TARGET VARIABLE=VALUE ...
release() {
	target=$1
	shift
	make -s "$target" RELEASE="$folder" KEY="$work/key" \
		PUB="$work/key.pub" "$@" >"$work/log" 2>&1
}

# refuses WHAT LINE VARIABLE=VALUE ...
refuses() {
	what=$1 line=$2
	shift 2
	! release "$@" || fail "$what is accepted"
	grep -q "^release.*: .*$line" "$work/log" || fail "$what: not '$line'"
}

release release DRAFT=1 RELEASE_DEBS="${REFRAIN_DEBS:-$PWD/debs}" || {
	grep -q -e 'another archive' -e '0 files' "$work/log" ||
		fail 'make release'
	[ -z "${REFRAIN_DEBS:-}" ] || fail 'these packages are of another tree'
	release release DRAFT=1 || fail 'make release'
}
python3 "$here/package_release.py" --form "$folder"/*.spdx.json ||
	fail 'the SBOM'
(cd "$folder" && sha256sum --quiet --strict -c SHA256SUMS) || fail 'SHA256SUMS'
release release-check DRAFT=1 ${REFRAIN_REBUILD:+REBUILD=1} ||
	fail 'make release-check'
tail -n 1 "$work/log"

refuses 'a draft' "signed as '.* draft', not" release-check
refuses 'an archive of another time' 'the tree makes another archive' \
	release-check DRAFT=1 SOURCE_DATE_EPOCH=1000000000
deb=$(find "$folder" -name 'refrain_*.deb')
printf x >>"$deb"
refuses 'a package with one more byte' "${deb##*/}: its checksum" \
	release-check DRAFT=1
refuses 'a release without a public key' 'there is no public key' \
	release-check DRAFT=1 PUB="$work/none.pub"

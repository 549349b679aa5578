#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `make site`: every link and anchor of the pages leads somewhere, nothing is
# loaded from elsewhere, each manual page is there, and a second site, made in
# another place and time zone, is the same. A document with a bad link makes no
# site. `make check-packages` runs this.
set -eu
work=$(mktemp -d "$PWD/package-site.XXXXXX")
trap 'rm -rf "$work"' EXIT
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
fail() {
	tail -n 20 "$work/log" 2>/dev/null || :
	echo "FAILED: $*"
	exit 1
}
for program in mkdocs mandoc python3; do
	command -v $program >/dev/null || {
		echo "skipped: needs $program"
		exit 77
	}
done

python3 "$top/tests/system/package_site.py" --self-test
make -s site SITE="$work/site" >"$work/log" 2>&1 || fail 'make site'
python3 "$top/tests/system/package_site.py" "$work/site" man >"$work/log" ||
	fail 'the site'
cat "$work/log"

# Build the site in another place of the tree, too.
mkdir -p "$work/another/place"
(cd "$top" && tar -chf - ./*.md build-aux doc examples man packaging \
	tests/README.md tools) | tar -xf - -C "$work/another/place"
umask 077
TZ=Asia/Tokyo LC_ALL=C SOURCE_DATE_EPOCH=1000000000 \
	"$work/another/place/build-aux/site" "$work/another/place" man \
	"$work/again" >"$work/log" 2>&1 || fail 'the second site'
diff -r "$work/site" "$work/again" >"$work/log" || fail 'made twice, it differs'

refuses() {
	printf '\n%s\n' "$1" >>"$work/another/place/doc/python.md"
	! "$work/another/place/build-aux/site" "$work/another/place" man \
		"$work/bad" >"$work/log" 2>&1 || fail "$1 makes a site"
	grep -q "doc/python.md.*$2" "$work/log" || fail "$1 is not named"
	sed -i '$d' "$work/another/place/doc/python.md"
}
refuses '[x](nowhere.c)' 'nowhere.c does not exist'
refuses '[x](../bench/README.md)' 'is not a page of the site'

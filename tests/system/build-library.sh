#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The installed library: its headers compile alone, it exports only its own
# names, it needs only certain libraries, and a program can be built with it,
# with the shared library and with the archive.
set -eu
command -v pkg-config >/dev/null || {
	echo 'skipped: needs pkg-config'
	exit 77
}
top=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d "$PWD/library.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

# variable NAME: print a variable of the makefile.
variable() {
	sed -n "s/^$1 = //p" Makefile
}

cc=$(variable CC)
sanitize=$(variable SANITIZE_CFLAGS)
strict='-Wall -Wextra -pedantic -Werror'

# -- The headers --------------------------------------------------------------
echo '#include <refrain/echo.h>' >"$work/alone.c" # includes loader.h
cp "$work/alone.c" "$work/alone.cc"
# shellcheck disable=SC2086 # lists of words
$cc -std=c11 $strict -I"$top/include" -c "$work/alone.c" -o "$work/alone.o" ||
	fail 'the header alone is no C11'
if command -v c++ >/dev/null; then
	cat >>"$work/alone.cc" <<'END'
int main()
{
	refrain_config c;
	refrain_config_init(&c);
	return c.batch != 0;
}
END
	# shellcheck disable=SC2086
	c++ -std=c++17 $strict -I"$top/include" "$work/alone.cc" \
		-o "$work/alone" || fail 'the header alone is not C++17'
	"$work/alone" || fail 'a configuration in C++'
else
	echo 'library: no C++ compiler, its part is left out'
fi

# -- What is in it ------------------------------------------------------------
make -s DESTDIR="$work/dest" install-libLTLIBRARIES \
	install-pkgincludeHEADERS install-pkgconfigDATA >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail 'make install'; }
so=$(find "$work/dest" -name 'librefrain.so' | head -n 1)
[ -n "$so" ] || fail 'no librefrain.so is installed'
names() {
	nm "$@" --defined-only | awk 'NF >= 3 && $2 != "A" { print $3 }' |
		sed 's/@.*//' | sort -u
}
names -D "$so" >"$work/exported"
grep -oh 'refrain_[a-z_]*(' "$top"/include/refrain/*.h | tr -d '(' |
	sort -u | while read -r f; do
	grep -q "REFRAIN_API.*[ *]$f(" "$top"/include/refrain/*.h ||
		continue
	grep -qx "$f" "$work/exported" || fail "$f is not exported"
done
! grep -v '^refrain_' "$work/exported" || fail 'other names are exported'
ldd "$so" >"$work/needs"
! grep -E 'libfuse|libjansson|libcuda|libOpenCL|libamdhip|blas' \
	"$work/needs" || fail 'it needs what it has no business with'
# The symbols of the installed library may be stripped, but not those of the
# archive. The lists of a sanitizer keep functions that nothing calls.
[ -n "$sanitize" ] || ! nm "$so" | grep -E ' (manifest|option)_' ||
	fail 'it holds dead weight'

# -- A program ----------------------------------------------------------------
# The configured paths are below DESTDIR now.
pc=$(find "$work/dest" -name refrain.pc)
sed "s|^\([a-z_]*\)=/|\1=$work/dest/|" "$pc" >"$work/refrain.pc"
PKG_CONFIG_PATH=$work
export PKG_CONFIG_PATH
./refrain make-dataset --classes 3 --images 40 --size 64x48 "$work/data" \
	>/dev/null
# expected: print the result for 80 servings in batches of 64.
expected() {
	"$@" "$work/data" >"$work/out" 2>&1 || {
		cat "$work/out"
		fail "$1 failed"
	}
	grep -q '^2 steps, sum' "$work/out" || {
		cat "$work/out"
		fail "$1 says something else"
	}
}

# shellcheck disable=SC2046,SC2086
$cc $sanitize -std=c11 $strict "$top/examples/minimal.c" -o "$work/shared" \
	$(pkg-config --cflags --libs refrain) || fail 'building with it'
LD_LIBRARY_PATH=$(dirname "$so") expected "$work/shared"
cp "$work/out" "$work/first"

[ -f librefrain.a ] || {
	echo 'library: configured without archives, their part is left out'
	exit 0
}
make -s DESTDIR="$work/dest" install-archiveDATA >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail 'make install of the archive'; }
archive=$(find "$work/dest" -name librefrain.a)
! names -g "$archive" | grep -v '^refrain_' ||
	fail 'the archive has other names'
[ -n "$sanitize" ] || ! nm "$archive" | grep -E ' (manifest|option)_' ||
	fail 'the archive holds dead weight'
# A program may define names that the library also has inside.
cat >"$work/clash.c" <<'END'
int hash64, error_set, decoder_new, dataset_open, permute, uring_read;
END
# shellcheck disable=SC2046,SC2086
$cc $sanitize -std=c11 "$top/examples/minimal.c" "$work/clash.c" \
	-o "$work/archived" $(pkg-config --static --cflags --libs refrain |
		sed 's/-lrefrain/-l:librefrain.a/') -pthread ||
	fail 'building with the archive'
ldd "$work/archived" | grep librefrain && fail 'it was not the archive'
expected "$work/archived"
cmp "$work/out" "$work/first" || fail 'the archive gives other pixels'
[ -z "$sanitize" ] || exit 0
# shellcheck disable=SC2046,SC2086
$cc -static -std=c11 "$top/examples/minimal.c" -o "$work/static" \
	$(pkg-config --static --cflags --libs refrain) 2>"$work/log" || {
	# The archive of xxHash may lack functions that its shared library has
	# (Debian 12).
	grep -qE 'cannot find -l|reference to .XXH' "$work/log" || {
		cat "$work/log"
		fail 'building a static program'
	}
	echo 'library: not all archives are here, -static is left out'
	exit 0
}
expected "$work/static"
cmp "$work/out" "$work/first" || fail 'a static program gets other pixels'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The wheel needs only the C library, in the version that its name gives. The
# tests of the package pass in an environment where pip has installed the wheel,
# without headers, pkg-config or an installed library. `make check-packages`
# runs this.
set -eu
work=$(mktemp -d "$PWD/package-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() {
	tail -n 20 "$work/log" 2>/dev/null || :
	echo "FAILED: $*"
	exit 1
}
skip() {
	echo "skipped: $*"
	exit 77
}
python=$(sed -n 's/^PYTHON = //p' Makefile)
[ -n "$python" ] || skip 'there is no Python with headers'
top=$(cd "${srcdir:-.}" && pwd)
bytes_most=8000000

grep -q '^wheel:' Makefile || skip 'built without the static library'
make -s wheel >"$work/log" 2>&1 || fail 'make wheel'
wheel=$(echo python/wheel/*.whl)
[ -f "$wheel" ] || fail "not one wheel: $wheel"
bytes=$(wc -c <"$wheel")
echo "the wheel has $bytes bytes"
[ "$bytes" -le $bytes_most ] || fail 'it is too large'
tag='.*-cp311-abi3-manylinux_\([0-9]*\)_\([0-9]*\)_.*'
glibc=$(echo "$wheel" | sed -n "s/$tag/\1.\2/p")
[ -n "$glibc" ] || fail "the name is $wheel"

# -- What it needs ------------------------------------------------------------

"$python" -m venv --without-pip "$work/env" >"$work/log" 2>&1 || fail 'venv'
env -i PATH=/nonexistent "$python" -m pip --disable-pip-version-check \
	--python "$work/env/bin/python" install --no-index --no-deps "$wheel" \
	>"$work/log" 2>&1 || fail 'pip install'
module=$(find "$work/env" -name '_refrain*.so')
objdump -p "$module" | sed -n 's/^ *NEEDED *//p' |
	grep -v -x -e 'libc\.so\.6' -e 'libm\.so\.6' -e 'ld-linux.*' \
		-e 'libpthread\.so\.0' >"$work/log" &&
	fail 'it needs more than libc'
objdump -T "$module" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' |
	sort -V | tail -n 1 >"$work/newest"
printf '%s\n%s\n' "$(cat "$work/newest")" "$glibc" | sort -V -C ||
	fail "it needs glibc $(cat "$work/newest")"
objdump -T "$module" | grep ' [gu]*DF \.text' | grep -v ' PyInit_' \
	>"$work/log" && fail 'it exports more than its beginning'
"$work/env/bin/python" -c '
import refrain
assert "site-packages" in refrain.__file__' 2>"$work/log" || fail 'import'

# -- The tests of the package -------------------------------------------------

# NumPy and pytest are those of the host. This runs beside builds, where
# importing torch alone has taken a minute.
CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5}
export CK_TIMEOUT_MULTIPLIER
sed -i '/^include-system-site-packages/s/false/true/' "$work/env/pyvenv.cfg"
REFRAIN_TEST_BUILD=$PWD XDG_CACHE_HOME=$work/cache PYTHONDONTWRITEBYTECODE=1 \
	"$work/env/bin/python" -m pytest -q -p no:cacheprovider \
	--basetemp="$work/tmp" "$top/tests/python" >"$work/log" 2>&1 ||
	fail 'tests'
tail -n 1 "$work/log"

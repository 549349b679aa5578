#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs the Python package as a user does: with pip, without a network,
# against the installed library, from a copy of python/ alone. Also checks a
# wheel, a source distribution, and the error of an import without the library.
set -eu
variable() {
	sed -n "s/^$1 = //p" Makefile
}
skip() {
	echo "skipped: $*"
	exit 77
}
fail() {
	cat "$work/log" 2>/dev/null || :
	echo "FAILED: $*"
	exit 1
}
python=$(variable PYTHON)
[ -n "$python" ] || skip 'there is no Python with headers'
[ -z "$(variable SANITIZE_CFLAGS)" ] || skip 'the library has a sanitizer'
"$python" -c 'import importlib.util as u, sys
names = ["pip", "setuptools", "venv", "wheel"]
sys.exit(not all(u.find_spec(n) for n in names))' ||
	skip "$python has no pip, setuptools, venv or wheel"
command -v pkg-config >/dev/null || skip 'needs pkg-config'
top=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d "$PWD/python-install.XXXXXX")
trap 'rm -rf "$work"' EXIT

make -s DESTDIR="$work/dest" install-libLTLIBRARIES \
	install-pkgincludeHEADERS install-pkgconfigDATA >"$work/log" 2>&1 ||
	fail 'make install'
PKG_CONFIG_SYSROOT_DIR=$work/dest
PKG_CONFIG_PATH=$(dirname "$(find "$work/dest" -name refrain.pc)")
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH
# pip builds inside the tree, and this one may be read-only, so make a copy.
cp -R "$top/python" "$work/python"
chmod -R u+w "$work/python"
"$python" -m venv --without-pip --system-site-packages "$work/env" \
	>"$work/log" 2>&1 || fail 'venv'
env=$work/env/bin/python
# Run pip without a network, if this user can do that.
offline=
! unshare -rn true 2>/dev/null || offline='unshare -rn'
# shellcheck disable=SC2086 # a list of words
CFLAGS=-O0 $offline "$env" -m pip --disable-pip-version-check install \
	--no-build-isolation --no-index "$work/python" \
	>"$work/log" 2>&1 || fail 'pip install'
# pip first builds a wheel.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	grep -q 'Created wheel.*-cp311-abi3-' "$work/log" ||
		fail 'the wheel is not for the stable ABI'
fi

cat >"$work/use.py" <<'END'
import refrain
assert refrain.__file__.startswith(__import__('sys').prefix), refrain.__file__
assert 'batch' in refrain.members()
try:
    refrain.Loader('/nonexistent', batch=1)
except FileNotFoundError as e:
    print('stage', e.stage)
END
cd "$work"
[ "$("$env" "$work/use.py" 2>"$work/log")" = 'stage open' ] ||
	fail 'what was installed does not run'
for f in py.typed __init__.pyi torch.pyi plan.py; do
	find env -path "*/refrain/$f" | grep -q . || fail "$f is not installed"
done

# A source distribution has all that the build needs.
(cd python && "$env" setup.py -q sdist -d "$work/sdist") >"$work/log" 2>&1 ||
	fail 'sdist'
CFLAGS=-O0 "$env" -m pip --disable-pip-version-check wheel --no-deps \
	--no-build-isolation --no-index -w "$work/wheel" \
	"$work"/sdist/*.tar.gz >"$work/log" 2>&1 ||
	fail 'the source distribution cannot be built'
"$python" -m zipfile -l "$work"/wheel/*.whl >"$work/log"
grep -q 'refrain/plan\.py' "$work/log" || fail 'the wheel has no plan.py'

# The library is removed.
find "$work/dest" -name 'librefrain.so*' -exec rm {} +
if "$env" -c 'import refrain' >"$work/out" 2>&1; then
	ldconfig -p 2>/dev/null | grep -q librefrain ||
		fail 'an import without the library worked'
else
	grep -q 'ImportError.*make install' "$work/out" || {
		cp "$work/out" "$work/log"
		fail 'it does not say what to install'
	}
fi
unset PKG_CONFIG_PATH
cd python
if PKG_CONFIG_LIBDIR=/nonexistent "$env" setup.py build >"$work/log" 2>&1; then
	fail 'it was built without the library'
fi
grep -q 'pkg-config does not find' "$work/log" ||
	fail 'the build does not say what to install'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Python package as configure built it: pytest on tests/python. With
# REFRAIN_PYTEST a list of words for pytest, such as -k word; with
# REFRAIN_TEST_PACKAGE another build of the package, under AddressSanitizer.
set -eu
variable() {
	sed -n "s/^$1 = //p" Makefile
}
python=$(variable PYTHON)
if [ -z "$python" ] || [ ! -d python/pkg ]; then
	echo 'skipped: python/ is not built: no headers of Python'
	exit 77
fi
"$python" -c 'import numpy, pytest' 2>/dev/null || {
	echo "skipped: $python has no NumPy or no pytest"
	exit 77
}
top=$(cd "${srcdir:-.}" && pwd)
package=${REFRAIN_TEST_PACKAGE:-python/pkg}
case ${REFRAIN_TEST_PACKAGE:+address}$(variable SANITIZE_CFLAGS) in
*thread*)
	echo 'skipped: Python is not built for ThreadSanitizer'
	exit 77
	;;
*address*)
	# What Python itself leaves behind is not ours to count.
	preload=$($(variable CC) -print-file-name=libasan.so)
	ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
	PYTHONMALLOC=malloc REFRAIN_TEST_SANITIZER=1
	export ASAN_OPTIONS PYTHONMALLOC REFRAIN_TEST_SANITIZER
	;;
*)
	preload=
	;;
esac
work=$(mktemp -d "$PWD/python-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PYTHONPATH=$PWD/$package
XDG_CACHE_HOME=$work/cache
REFRAIN_TEST_BUILD=$PWD
export LD_LIBRARY_PATH PYTHONPATH XDG_CACHE_HOME REFRAIN_TEST_BUILD
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
# shellcheck disable=SC2086 # a list of words
env ${preload:+LD_PRELOAD="$preload"} "$python" -X dev -m pytest -q \
	-p no:cacheprovider --basetemp="$work/tmp" --durations=5 \
	"$top/tests/python" ${REFRAIN_PYTEST:-}

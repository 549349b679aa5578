#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs pytest in tests/python on the Python package that configure has built.
# REFRAIN_PYTEST is a list of words for pytest, such as -k word.
# REFRAIN_TEST_PACKAGE is another build of the package, under AddressSanitizer.
set -eu
name=python
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires timeout
variable() {
	sed -n "s/^$1 = //p" Makefile
}
python=$(variable PYTHON)
if [ -z "$python" ] || [ ! -d python/pkg ]; then
	skip 'python/ is not built: no headers of Python'
fi
"$python" -c 'import numpy, pytest' 2>/dev/null ||
	skip "$python has no NumPy or no pytest"
top=$(cd "${srcdir:-.}" && pwd)
package=${REFRAIN_TEST_PACKAGE:-python/pkg}
case ${REFRAIN_TEST_PACKAGE:+address}$(variable SANITIZE_CFLAGS) in
*thread*)
	skip 'Python is not built for ThreadSanitizer'
	;;
*address*)
	# Do not count memory that Python itself leaves behind.
	preload=$($(variable CC) -print-file-name=libasan.so)
	ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}
	PYTHONMALLOC=malloc REFRAIN_TEST_SANITIZER=1
	export ASAN_OPTIONS PYTHONMALLOC REFRAIN_TEST_SANITIZER
	;;
*)
	preload=
	;;
esac
LD_LIBRARY_PATH=$PWD/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PYTHONPATH=$PWD/$package
XDG_CACHE_HOME=$work/cache
REFRAIN_TEST_BUILD=$PWD
export LD_LIBRARY_PATH PYTHONPATH XDG_CACHE_HOME REFRAIN_TEST_BUILD
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
# A test that hangs prints its stack after a while, and is ended.
# shellcheck disable=SC2086 # a list of words
timeout -k 30 $((600 * patience)) \
	env ${preload:+LD_PRELOAD="$preload"} "$python" -X dev -m pytest -q \
	-p no:cacheprovider --basetemp="$work/tmp" --durations=5 \
	-o faulthandler_timeout=$((240 * patience)) \
	"$top/tests/python" ${REFRAIN_PYTEST:-}

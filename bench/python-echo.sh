#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The echo stage over a torchvision pipeline whose decoding takes 2 and 6 times
# as long as training: bench/python_echo.py says what is measured. Writes
# bench-python-echo.json. Needs Debian's python3-torchvision.
set -eu
name='python-echo'
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

python=$(sed -n 's/^PYTHON = //p' Makefile)
{ [ -n "$python" ] && [ -d python/pkg ]; } || bench_skip 'python/ is not built'
"$python" -c 'import torchvision' 2>/dev/null ||
	bench_skip 'there is no torchvision'
echo "python-echo: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
LD_LIBRARY_PATH=$PWD/.libs PYTHONPATH=$PWD/python/pkg
export LD_LIBRARY_PATH PYTHONPATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
"$python" "$bench/python_echo.py" --json "$json_out" "$@"

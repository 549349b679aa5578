#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the Python package with `refrain load --no-hash` with the same
# options, and with PyTorch's DataLoader with torchvision; two loaders in
# threads of one process with two processes; and eight processes that share
# their batches with one alone. The trainers do nothing, and release each batch
# before they ask for the next one.
#
#   ROUNDS=7 FILES=DIR bench/python.sh
#
# FILES is a directory of directories of JPEGs; the default is 500 generated
# images of 500x375. A row is the median of the rounds' ratios, the least and
# the greatest of them, the bar, and whether it is met. The last line is PASS,
# or FAIL and the rows that fail. Writes bench-python.json. Needs two
# processors; DataLoader needs Debian's python3-torchvision.
set -eu
name=python
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

python=$(sed -n 's/^PYTHON = //p' Makefile)
{ [ -n "$python" ] && [ -d python/pkg ]; } || bench_skip 'python/ is not built'
machine=$(machine) # before OMP_NUM_THREADS, which nproc obeys
LD_LIBRARY_PATH=$PWD/.libs PYTHONPATH=$PWD/python/pkg
export LD_LIBRARY_PATH PYTHONPATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
XDG_CACHE_HOME=$work/index
XDG_RUNTIME_DIR=$work
export XDG_CACHE_HOME XDG_RUNTIME_DIR
files=${FILES:-$work/files}
[ -n "${FILES:-}" ] ||
	"$refrain" make-dataset "$files" --classes 20 --images 500 \
		--size 500x375 >/dev/null || bench_fail 'there are no images'
"$refrain" make-dataset "$work/small" --classes 10 --images 5000 \
	--size 32x32 >/dev/null || bench_fail 'there are no small images'

echo "python: $machine, load $(cut -d ' ' -f 1 /proc/loadavg)"
"$python" "$bench/python_bars.py" --rounds "${ROUNDS:-7}" \
	--refrain "$refrain" --files "$files" --small "$work/small" \
	--json "$json_out" --machine "$machine"

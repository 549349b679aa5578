#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares epochs with a plan with the best that the source, the trainer and a
# bare reader allow; bench/plan_bars.py says how that is computed.
#
#   bench/plan-bars.sh [CELL ...]
#
# A cell is a name, a pattern of names such as `load-delay-*`, or a set:
# `quick`, the default; `cover`, the fewest cells that have each value of the
# bar once, about 10 minutes; `all`, about 25. `list` prints the names. A row is
# the four terms of the ideal epoch in seconds, each epoch's time divided by the
# greatest of them, the bytes fetched in vain, and the balance of bytes. The bar
# is 1.05 from the third epoch on, 0 and 0. The last line is the verdict: PASS,
# or FAIL and the cells that fail. Writes bench-plan-bars.json. Needs FUSE.
set -eu
name=plan-bars
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"
[ "${1:-}" != list ] || exec python3 "$bench/plan_bars.py" --list
[ -w /dev/fuse ] || bench_skip 'cannot open /dev/fuse'
command -v python3 >/dev/null || bench_skip 'needs python3'

# The cells of the Python package need this.
python=$(sed -n 's/^PYTHON = //p' Makefile)
LD_LIBRARY_PATH=$PWD/.libs PYTHONPATH=$PWD/python/pkg
export LD_LIBRARY_PATH PYTHONPATH PYTHONDONTWRITEBYTECODE=1

files=1500 bytes=110000
XDG_CACHE_HOME=$work/index
export XDG_CACHE_HOME

# Many copies of one small picture, each padded.
"$refrain" make-dataset "$work/one" --classes 1 --images 1 --size 64x64 \
	>/dev/null
find "$work/one" -name '*.jpg' -exec cp {} "$work/picture" \;
truncate -s $bytes "$work/picture"
mkdir -p "$work/src/c"
seq 1 $files | while read -r i; do
	cp "$work/picture" "$work/src/c/$i.jpg"
done

# The same, with files of another kind beside them.
mkdir -p "$work/both/f"
cp -rl "$work/src" "$work/both/train"
seq 0 149 | while read -r i; do
	cp "$work/picture" "$work/both/f/$i"
done

echo "plan-bars: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
python3 "$bench/plan_bars.py" --refrain "$refrain" --reader "$reader" \
	--tools "$bench/../tools" --source "$work/src" --both "$work/both" \
	--work "$work" --json "$json_out" --machine "$(machine)" \
	--python "${python:-python3}" --trainer "$bench/python_steps.py" "$@"

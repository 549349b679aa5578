#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares predictions of `refrain analyze` with trainers measured with a real
# cache of each size: PyTorch's DataLoader with 2 and 4 workers, `refrain load`,
# experiments/echo-train (cnn), and (sl2, sl4) threads that sleep instead of
# preparing, from a throttled disk and from a source of 5 ms a request.
# analyze.py prints the table and the verdict. FILES is a directory of
# directories of JPEGs.
#
#   [FILES=DIR] [TRAINERS='dl2 dl4 load cnn'] [ORIGINS='disk far']
#   [SIZES='0.1 0.35 0.5 0.65 0.9'] [SEGMENT=16] [TRUTH=6] [STEP_MS=28]
#   [ADD=yes] bench/analyze.sh
#
# A step of DataLoader's trainer takes STEP_MS for a batch of 16. With less, the
# processors would be the limit, and their speed changes from minute to minute.
# ADD keeps the cells of other trainers and origins in bench-analyze.json.
#
# Needs root and FUSE. If other programs run meanwhile, start this with `chrt -r
# 1`, so that they do not affect the result. Writes bench-analyze.json, and
# profiles whose names begin with that.
set -u
name=analyze
bench=$(cd "$(dirname "$0")" && pwd)
# Misses are read with direct I/O, so that only the throttle and the delay make
# them slow.
TMPDIR=${TMPDIR:-/dev/shm}
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

rate=${RATE:-9M}
XDG_CACHE_HOME=$work/index
XDG_RUNTIME_DIR=$work
TMPDIR=$work
export XDG_CACHE_HOME XDG_RUNTIME_DIR TMPDIR
[ -w /dev/fuse ] || bench_skip "cannot open /dev/fuse"
photos=${FILES:-$work/photos}
if [ -z "${FILES:-}" ]; then
	"$refrain" make-dataset --classes 8 --images 1024 --size 320x240 \
		"$photos" >/dev/null || bench_fail "no dataset"
fi
mkdir "$work/data"
cp -r "$photos" "$work/data/train"
case ${ORIGINS:=disk far} in
*disk*)
	bytes=$(numfmt --from=iec "$rate")
	slow_disk_make "$work" "$work/data" "$bytes" || bench_skip "$slow_why"
	;;
esac
mkdir -p "$mnt"

# The group throttles only its device, so all processes may be in it.
run=''
[ -z "$slow_dir" ] || run=slow_disk_run
$run python3 "$bench/analyze.py" --refrain "$refrain" --data "$work/data" \
	--disk "${slow_dir:-$work/data}" --mount "$mnt" --work "$work" \
	--trainers "${TRAINERS:-dl2 dl4 load cnn}" --origins "$ORIGINS" \
	--sizes "${SIZES:-0.1 0.35 0.5 0.65 0.9}" --segment "${SEGMENT:-16}" \
	--truth "${TRUTH:-6}" --step-ms "${STEP_MS:-28}" ${ADD:+--add} \
	--json bench-analyze.json

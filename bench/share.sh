#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares J jobs on one host that share their batches with J jobs that do not:
# images a second of each and of all, processor time, decodes, bytes read from
# the origin of a mount, memory. The stand-in trainers take no time and do not
# look at the pixels (--no-hash); in a second row they read every one. Then
# measures jobs beside one that is stopped, or slow and continues alone, the
# time from a released batch to the next one, and an idle job. bench/plot draws
# the first.
#
#   IMAGES=1200 SECONDS_EACH=4 [JOBS="1 2 4 8"] [DATA=DIRECTORY] bench/share.sh
#
# Prints tables and writes bench-share.json.
set -u
name=share
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

XDG_CACHE_HOME=$work/index
XDG_RUNTIME_DIR=$work
export XDG_CACHE_HOME XDG_RUNTIME_DIR
if [ -n "${DATA:-}" ]; then
	photos=$DATA
else
	photos=$work/photos
	"$refrain" make-dataset --classes 10 --images "${IMAGES:-1200}" \
		--size 500x375 "$photos" >/dev/null ||
		bench_fail "no dataset"
fi
mkdir -p "$mnt"
python3 "$bench/share.py" "$refrain" "$photos" "$mnt" "$work/tier" \
	"${SECONDS_EACH:-4}" "${JOBS:-1 2 4 8}" bench-share.json
status=$?
umount -l "$mnt" 2>/dev/null || :
exit $status

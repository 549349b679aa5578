#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Epochs from slow storage, with a cache for a share c of the data: the kernel's
# page cache, rclone's, and refrain without a plan, with one, and with echoes.
# `refrain load` stands in for the trainer. bench/epoch.py has what each of them
# does; this script makes the data and the slow disk. The disk's image and the
# caches lie in memory, so that nothing but the throttle is slow.
#
#   SIZE=smoke|short|full      half a minute, minutes (default), an hour
#   SHARES='0.35 0.5' SPEEDS='0.3 0.6' ORDERS='permuted cyclic'
#   CONTENDERS='page-cache plan plan-2 ...' STARTS='cold warmed'
#   STEPS=1000                 steps of a run, instead of EPOCHS=3
#   SHAPE=plain|resnet50|unet3d|cosmoflow|retinanet   what is read, of
#                              TOTAL_MB=800
#   SHAPE=photos FILES=DIR COPIES=16   photographs, as they are, from a folder
#              or a tar archive
#   TRAINER_MIB=40 READS_AHEAD=64   of the trainer; e auto reads three times as
#                              far ahead, in bursts, to time them
#   ADD=yes                    keep the runs that bench-epoch.json has
#   bench/epoch.sh
#
# Needs root, loop devices, control groups that throttle and bound memory, and
# python3; for one contender rclone.
set -u
name=epoch
bench=$(cd "$(dirname "$0")" && pwd)
TMPDIR=${TMPDIR:-/dev/shm}
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

# Even if this is killed, remove rclone's cache on the disk and control groups.
disk=$(mktemp -d /var/tmp/refrain-epoch.XXXXXX) || exit 1
epoch_cleanup() {
	bench_cleanup
	rm -rf "$disk"
	for g in "/sys/fs/cgroup/refrain-epoch-$$-"* \
		"/sys/fs/cgroup/memory/refrain-epoch-$$-"*; do
		[ ! -d "$g" ] || rmdir "$g"
	done
}
trap epoch_cleanup EXIT

SIZE=${SIZE:-short}
case $SIZE in
smoke)
	files=700
	SHARES=${SHARES:-0.25} SPEEDS=${SPEEDS:-0.3} ORDERS=${ORDERS:-permuted}
	EPOCHS=${EPOCHS:-2}
	;;
short)
	files=4000
	SHARES=${SHARES:-0.5} SPEEDS=${SPEEDS:-0.3} ORDERS=${ORDERS:-permuted}
	;;
full) files=4000 ;;
*) bench_fail "SIZE is smoke, short or full" ;;
esac

[ "$(id -u)" -eq 0 ] || bench_skip 'that takes root'
command -v python3 >/dev/null || bench_skip 'python3 is not installed'

# Copy FILES COPIES times; each copy is a class.
copy_photos() {
	[ -e "${FILES:-}" ] || bench_skip 'FILES names no photographs'
	photos=$FILES
	if [ -f "$FILES" ]; then
		photos=$work/photos
		mkdir "$photos" && tar xf "$FILES" -C "$photos" || exit 1
	fi
	mkdir "$work/data"
	copy=0
	while [ $((copy += 1)) -le "${COPIES:-16}" ]; do
		cp -r "$photos" "$work/data/$copy" || exit 1
	done
	rm -rf "$work/photos"
}

# Make images that cost little to decode, each padded with noise that a decoder
# ignores: the benchmark measures storage, not the processor.
SHAPE=${SHAPE:-plain}
if [ "$SHAPE" = photos ]; then
	copy_photos
else
	[ "$SHAPE" = plain ] ||
		files=$(python3 "$bench/epoch_shapes.py" "$SHAPE" \
			"${TOTAL_MB:-800}") || exit 1
	"$refrain" make-dataset --classes 10 --images "$files" --size 48x36 \
		"$work/data" >/dev/null || bench_fail 'cannot make the dataset'
	python3 "$bench/epoch.py" --pad "$work/data" --shape "$SHAPE" ||
		bench_fail 'cannot pad the dataset'
fi
slow_disk_make "$work" "$work/data" 1000000000 || bench_skip "$slow_why"
rm -rf "$work/data"
mkdir "$mnt"

echo "epoch: $(machine)"
python3 "$bench/epoch.py" --refrain "$refrain" --slow "$slow_dir" \
	--loop "$slow_loop" --group "$slow_group" --work "$work" \
	--disk "$disk" --id $$ \
	--machine "$(machine)" --shares "${SHARES:-0.25 0.35 0.5 0.65 0.8}" \
	--speeds "${SPEEDS:-0.3 0.6}" --orders "${ORDERS:-permuted cyclic}" \
	--starts "${STARTS:-cold}" --contenders "${CONTENDERS:-}" \
	--epochs "${EPOCHS:-3}" --steps "${STEPS:-0}" \
	--trainer-mib "${TRAINER_MIB:-0}" --reads-ahead "${READS_AHEAD:-0}" \
	--shape "$SHAPE" \
	${ADD:+--add} \
	--out "$json_out"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Echoes on a mount: a step costs the source B (1 - c) / e reads, with batches
# of B examples, a share c that is cached, and e echoes.
set -eu
name=load-echo-reads
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

# Bytes of an epoch that the kernel and the mount still have would not be read
# in the next epoch. So each run has a mount of its own, staging is small, and
# runs of several epochs are in order: no file is read again before it was
# dropped.
tiny=960
"$refrain" make-dataset --classes 2 --images $tiny --size 32x32 \
	"$work/tiny" >/dev/null
bytes=$(tree_bytes "$work/tiny")

mount_tiny() {
	[ -z "$daemon" ] || stop_mount
	start_mount "$work/tiny" "$mnt" --cache "$work/part:$((tiny * 2))K" \
		--pages 64K --limit 64K --chunk 64K --staging 256K
	scan_through
}

# echo_reads E EPOCHS OPTION ...: check a run that begins with the second epoch.
echo_reads() {
	e=$1 epochs=$2
	shift 2
	mount_tiny
	load "$mnt" --echo "$e" --epochs "$epochs" "$@"
	awk -v e="$e" -v n=$tiny -v kept="$(status_field entries)" \
		-v steps="$(value steps)" \
		-v reads="$(status_field origin_reads)" \
		-v bytes="$(status_field origin_bytes)" \
		-v rest=$((bytes - $(status_field resident_bytes))) 'BEGIN {
		want = 16 * (n - kept) / n / e
		off = reads / steps / want - 1
		off_bytes = bytes / steps / (16 * rest / n / e) - 1
		printf("e %s, c %.3f: %.3f reads a step for %.3f, bytes " \
			"%+.2f %%\n", e, kept / n, reads / steps, want,
			100 * off_bytes)
		exit !(kept > 0.4 * n && kept < 0.6 * n &&
			off * off < 0.0001 && off_bytes * off_bytes < 0.0001)
	}' >"$work/echo" || fail "not within 1 %: $(cat "$work/echo")"
	note "$(cat "$work/echo")"
	expect "fresh, e $e" "$(value fresh)" $((epochs * tiny))
	expect "wasted, e $e" "$(status_field prefetch_wasted)" 0
}

mount_tiny
load "$mnt"
read=$(status_field origin_bytes)
if [ "$read" -lt "$bytes" ] || [ $((read * 100)) -gt $((bytes * 101)) ]; then
	fail "the first epoch read $read bytes of $bytes"
fi
for e in 1 2 2.5 4; do
	echo_reads $e 1
done
echo_reads 2.5 3 --in-order --step-ms 4
# Without a step time, a run may end before its first miss has caused a plan.
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'nothing was ahead'
stop_mount

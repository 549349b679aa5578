# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of reads of s3://; sourced after far-lib.sh. Starts a store of 300
# files in three directories.
far_start files=300 size=110000 dirs=3
s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "$far" "$@"
}

# read_once: read everything once through a mount without faults; $work/all has
# the bytes.
read_once() {
	s3_mount many
	scan_through
	cat "$mnt"/*/* >"$work/all" || fail 'cannot read'
	stop_mount
	rm -rf "$work/tier"
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Windows of tokens and crops of volumes are read by ranges through a mount.
# The samples are those of the bare directory, whether the cache is empty, or
# holds half or all of the data. Of volumes, hardly any chunk is fetched that no
# crop touches.
set -eu
name=load-ranges
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse timeout

# array NAME SHAPE BYTES: an array of f4 with random bytes.
array() {
	text="{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"
	{
		printf '\223NUMPY\001\000\166\000%-117s\n' "$text"
		head -c "$3" /dev/urandom
	} >"$src/scans/$1.npy"
}

scans=5
planes=24
chunk=262144
mkdir "$src/scans" "$src/tokens"
for i in $(seq $scans); do
	array "$i" '32, 256, 256' 8388608
done
for i in 1 2 3; do
	head -c $((i * 400000)) /dev/urandom >"$src/tokens/$i.bin"
done

# run WHAT DIRECTORY OPTION ...: its JSON is in $work/json.
run() {
	directory=$2
	case $1 in
	tokens) fields='tokens length=500' ;;
	scans) fields="array crop=${planes}x64x64" ;;
	esac
	what=$1
	shift 2
	timeout 120 "$refrain" load "$directory/$what" --fields "$fields" \
		--batch 5 --seed 7 --epochs "${epochs:-2}" --json "$@" \
		>"$work/json" 2>"$work/err" ||
		fail "load $what: $(cat "$work/err")"
}

value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

for what in tokens scans; do
	run $what "$src"
	eval "want_$what=$(value pixel_hash)"
done

same() {
	for what in tokens scans; do
		run $what "$mnt"
		eval "want=\$want_$what"
		expect "pixels of $what, $1" "$(value pixel_hash)" "$want"
		expect "errors of $what, $1" "$(value errors)" 0
	done
}

start_mount "$src" "$mnt" --cache "$work/full:128M" --limit 256K
epochs=1 run scans "$mnt"
# Each row of a plane is in the chunk of that plane.
touched=$((scans * planes * chunk))
fetched=$(status_field origin_bytes)
note "volumes: $fetched bytes fetched, $(value bytes_read) read," \
	"the chunks of the crops have $touched"
[ "$fetched" -le $((touched * 11 / 10)) ] || fail 'too much was fetched'
same empty
same 'partly full'
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
before=$(status_field origin_bytes)
same full
expect 'bytes fetched, full' "$(status_field origin_bytes)" "$before"
stop_mount

start_mount "$src" "$mnt" --cache "$work/half:22M" --limit 256K
same half
same 'half, again'
stop_mount

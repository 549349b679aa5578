# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # variables come from lib.sh
#
# For tests of a mount with --analysis; sourced after lib.sh. Mounts JPEGs, a
# text and a long file, with everything cached.
requires fuse python3

"$refrain" make-dataset --classes 2 --images 60 --size 96x72 "$src" >/dev/null
printf 'not an image' >"$src/text"
head -c 110000 /dev/zero >"$src/long"
start_mount "$src" "$mnt" --cache "$work/tier:64M" --analysis
scan_through
"$refrain" warm "$mnt" >/dev/null

# ask_mount: run the Python on standard input, which imports analyze_mount.
ask_mount() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$0") \
		python3 - "$mnt" "$src" "$patience" || fail 'see above'
}

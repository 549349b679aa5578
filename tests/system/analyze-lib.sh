# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain analyze`; sourced after lib.sh. Makes 200 images in
# $src, and directories for temporary files and caches.
requires fuse python3 timeout
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
export XDG_CACHE_HOME TMPDIR
mkdir "$TMPDIR" "$work/fast"

"$refrain" make-dataset --classes 2 --images 200 --size 128x96 "$src" >/dev/null

# analyses: run the Python on standard input, which imports analyze_run. Check
# that no mount and no directory of an analysis is left.
analyses() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$0") \
		timeout $((180 * patience)) \
		python3 - "$refrain" "$src" "$work" "$patience" ||
		fail 'see above'
	[ -z "$(mounts_below "$work")" ] || fail 'mounts are left'
	left=$(find "$work/tmp" "$work/fast" -mindepth 1)
	[ -z "$left" ] || fail "left: $left"
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of the predictions of `refrain analyze`; sourced after lib.sh. Makes
# a dataset in "$work/data".
requires fuse python3 timeout
bench=$(cd "$(dirname "$0")/../../bench" && pwd)
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
PYTHONPATH=$bench
PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME TMPDIR PYTHONPATH PYTHONDONTWRITEBYTECODE
mkdir "$TMPDIR" "$work/data"

"$refrain" make-dataset --classes 2 --images 320 --size 320x240 \
	"$work/data/train" >/dev/null

# predicts NAME: check the prediction for the case NAME of analyze_truth.py.
predicts() {
	timeout $((120 * patience)) python3 "$(dirname "$0")/analyze_truth.py" \
		"$refrain" "$work" "$1" || fail 'see above'
	[ -z "$(mounts_below "$work")" ] || fail 'mounts are left'
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The example of tools/refrain_plan.py under PyTorch itself: on a mount, with
# the helper and without it, and on a bare directory. The batches are the same,
# and with the helper they are fetched ahead.
set -eu
name=torch
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
for python in python3 /usr/bin/python3 none; do
	[ "$python" != none ] || skip 'needs PyTorch and torchvision'
	"$python" -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("torch") and u.find_spec("torchvision")))' &&
		break
done

here=$(cd "$(dirname "$0")" && pwd)
images=120
rm -rf "$src"
"$refrain" make-dataset --classes 3 --images $images --size 48x36 "$src" \
	>/dev/null
start_mount "$src" "$mnt" --cache "$work/tier:64K"
scan_through
tools=$(cd "${srcdir:-$here/../..}/tools" && pwd)
PYTHONDONTWRITEBYTECODE=1 timeout 120 "$python" "$here/torch_example.py" \
	"$tools" "$refrain" "$mnt" "$src" || fail 'the example'
wait_for 10 has_status plans 0 || fail 'a plan is left'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The messages of `refrain load` name options, not members of the library's
# configuration.
set -eu
name=load-refused
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-messages-lib.sh
. "$(dirname "$0")/load-messages-lib.sh"

damage_some
image=$(cd "$data" && find . -name '*.jpg' | sort | head -n 1)
refused 2 '--window is 20' "$data" --batch 16 --echo 4 --window 20
refused 2 '--reads-ahead 64' "$data" --batch 16 --echo auto --window 20
refused 1 '--memory is 1048576' "$data" --batch 64 --memory 1M
# shellcheck disable=SC3045 # dash and bash have it
ldd "$refrain" | grep -q -e libasan -e libtsan || (
	ulimit -d 400000
	unset='--memory is not set, and a quarter of the data of this process'
	refused 1 "$unset" "$data" --batch 1024 --size 224
) || exit 1
refused 1 '--max-damage allows' "$work/bad" --batch 8
refused 2 'single image' "$data/$image" --batch 8

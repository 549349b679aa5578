#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load` prints the number of damaged examples, and how often they were
# served.
set -eu
name=load-damage-shown
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-messages-lib.sh
. "$(dirname "$0")/load-messages-lib.sh"

damage_some
data=$work/bad
says 'damage    23 examples, 46 times' --batch 8 --epochs 2 --policy zero \
	--max-damage 1

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Options of `refrain load`: each changes the stream or the pixels as it should,
# 0 is the default, and an invalid value is refused in one line.
set -eu
name=load-options
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

load
plain=$(hashes)

# Every member of the configuration is an option; hashing can be left out.
about='members'
load --no-flip --jitter 0.4,0.4,0.2 --area-min 1/2 --mean 0.5 --std 0.5 \
	--type f32 --layout nchw
is fresh $fresh
[ "$(hashes)" != "$plain" ] || fail 'members change nothing'
load --no-hash
is stream_hash "${plain% *}"
is pixel_hash ''
if "$refrain" load "$data" --batch 4 --aspect-min none 2>"$work/err"; then
	fail 'a word was taken for a number'
fi
expect 'the message' "$(cat "$work/err")" "refrain: load: --aspect-min: 'none' \
is not a number such as 2, 2.5 or 5/2"

# The default size.
load --size 224
with_default=$(hashes)
load --size 32
[ "$(hashes)" != "$with_default" ] || fail '--size 32 has the pixels of 224'
load --size 0
expect '--size 0' "$(hashes)" "$with_default"
note '--size 0 is the default'

# Invalid values.
refused auto --echo auto --world 2
refused "needs --echo auto" --echo-log "$work/log"
refused 'before|after|batch' --echo-point middle
refused echo --echo 0.5
refused rank --world 2 --rank 2
refused policy --policy ignore
note 'options that cannot be are refused'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A process that is killed while its look-up or its listing waits for an origin
# that hangs ends at once, not at the origin's time-out; the mount continues,
# and the names are right when the origin answers again.
set -eu
name=killed-reader
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse timeout

mkdir "$src/hangs"
for i in 1 2 3; do
	echo "$i" >"$src/hangs/f$i"
done

# The origin hangs from the beginning, so even the first scan cannot list the
# directory.
start_mount "$src" "$mnt" --cache "$work/cache:10M" \
	--fault 'stall=1,meta=1,match=hangs'

# ended COMMAND ...: kill the command after a moment, and check that it ends
# long before 120 s.
ended() {
	begin=$(date +%s)
	timeout -s KILL 0.5 "$@" >/dev/null 2>&1 && fail "'$*' was answered"
	took=$(($(date +%s) - begin))
	[ $took -le $((10 * patience)) ] || fail "'$*' took $took s to die"
}

ended ls "$mnt/hangs"
ended cat "$mnt/hangs/f1"
ended stat "$mnt/hangs/none"
ended stat "$mnt/none-hangs"
[ "$(status_field parked)" = 0 ] || note 'a read is parked, too'

"$refrain" fault "$mnt" ''
[ "$(ls "$mnt/hangs")" = 'f1
f2
f3' ] || fail 'the listing is not right afterwards'
[ "$(cat "$mnt/hangs"/f1 "$mnt/hangs"/f[23] | tr -d '\n')" = 123 ] ||
	fail 'the bytes are not right afterwards'
stop_mount

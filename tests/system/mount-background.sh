#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount in the background keeps nothing of its caller: no descriptor,
# directory or session. SIGTERM ends it.
set -eu
name=mount-background
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

# This command substitution ends only when the daemon has closed the pipe.
said=$(cd "$work" && timeout 20 "$refrain" mount src "$mnt" \
	--cache "cache.9:200M" --pages 100M) ||
	fail 'no mount in the background'
cache=$work/cache.9
[ -z "$said" ] || fail "it says: $said"
sums_right "$src.sums" "$mnt"
pid=$(status_field pid)
expect 'working directory' "$(readlink "/proc/$pid/cwd")" /
for fd in 0 1 2; do
	expect "descriptor $fd" "$(readlink "/proc/$pid/fd/$fd")" /dev/null
done
expect session "$(cut -d' ' -f6 "/proc/$pid/stat")" "$pid"
kill "$pid"
wait_for 10 has_ended "$pid" || fail 'the background daemon does not end'
all_gone 'SIGTERM in the background'

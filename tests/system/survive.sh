#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Readers outlive the daemon (V1): it is killed at random moments under readers
# of every kind, and none of them sees an error, a wrong byte, another inode, or
# hangs; by FUSE_NOTIFY_RESEND, and without it. The holder ends with the mount.
#
# REFRAIN_KILLS is how many times (30), REFRAIN_SEED which moments.
set -eu
name=survive
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

kills=${REFRAIN_KILLS:-30}
first_seed=${REFRAIN_SEED:-$(date +%N | sed 's/^0*//')}
seed=${first_seed:-1}
here=$(cd "$(dirname "$0")" && pwd)
note "seed $seed; again with REFRAIN_SEED=$seed"

make_tree "$src" 3 120 400000
head -c 5000000 /dev/urandom >"$src/shard"
mkdir "$src/many"
(cd "$src/many" && seq -f 'n%05.0f' "${REFRAIN_NAMES:-3000}" | xargs touch)
cache=$work/cache
bytes=$(tree_bytes "$src")

# held_mount OPTION ...: in the background, which has a holder.
held_mount() {
	"$refrain" mount "$src" "$mnt" --cache "$cache:$((bytes / 2))" \
		--limit 128K --chunk 64K --staging 512K \
		--log-file "$work/log" "$@" || fail 'cannot mount'
	pid=$(status_field pid)
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
}

ends_with_mount() {
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	has_ended "$holder" || fail 'the holder outlives the mount'
}

under_kills() {
	held_mount
	python3 "$here/survive.py" "$refrain" "$mnt" "$src" "$kills" "$seed" \
		>"$work/said" 2>&1 ||
		fail "$1: $(tail -n 30 "$work/said" "$work/log")"
	note "$1: $(tail -n 1 "$work/said")"
	expect 'recoveries' "$(status_field recoveries)" "$kills"
	has_status held yes || fail 'it is not held'
	ends_with_mount
}

under_kills 'by RESEND'
REFRAIN_DISABLE=resend
export REFRAIN_DISABLE
under_kills 'by the journal'

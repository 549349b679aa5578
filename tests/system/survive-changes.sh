#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon dies after it has recorded changes of the source, and before the
# kernel was notified of all of them. The next daemon notifies the kernel (V1),
# so that after a refresh every name has its new file.
set -eu
name=survive-changes
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

here=$(cd "$(dirname "$0")" && pwd)
mkdir "$src/d"
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	"$refrain" mount "$src" "$mnt" --cache "$work/cache:64M" \
		--log-file "$work/log" || fail 'cannot mount'
	pid=$(status_field pid)
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
	timeout $((600 * patience)) python3 "$here/survive_changes.py" \
		"$refrain" "$src" "$mnt" "$holder" 3 \
		>"$work/said" 2>&1 ||
		fail "$(cat "$work/said"; tail -n 20 "$work/log")"
	note "${REFRAIN_DISABLE:+without }RESEND: $(cat "$work/said")"
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 20 has_ended "$holder" || fail 'the holder outlives the mount'
done

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Another refrain mount can be unmounted while an analysis runs, and its daemon
# ends: with mounts that are propagated to other namespaces, and with private
# ones. A mount that the command names stays visible to the command.
set -eu
name=analyze-mounts
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse timeout
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip "cannot make a mount namespace"
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
export XDG_CACHE_HOME TMPDIR
mkdir "$TMPDIR" "$work/fast" "$work/one" "$work/two"
"$refrain" make-dataset --classes 1 --images 8 --size 64x48 "$src" >/dev/null

# A command that lists the second mount, and then reads without end.
# shellcheck disable=SC2016 # it is for the command
command='ls "$2" >"$1.two"; : >"$1"
	while :; do cat "$0"/*/* >/dev/null; done'

# unmounts PROPAGATION: unmount both mounts, the first one during an analysis.
# The command names the second one.
unmounts() {
	mount "--make-$1" / || skip "cannot make / $1"
	"$refrain" mount "$src" "$work/one" --cache "$work/cache-one:1M" \
		>/dev/null
	"$refrain" mount "$src" "$work/two" --cache "$work/cache-two:1M" \
		>/dev/null
	rm -f "$work/began" "$work/began.two" "$work/out"
	"$refrain" analyze --cache "$work/fast" "$src" -- sh -c "$command" \
		"$src" "$work/began" "$work/two" >"$work/out" 2>&1 &
	analysis=$!
	wait_for 30 test -e "$work/began" ||
		fail "$1: the command does not begin: $(cat "$work/out")"
	cmp "$work/began.two" "$work/names" ||
		fail "$1: the command does not see what it names"
	timeout $((20 * patience)) "$refrain" umount "$work/one" ||
		fail "$1: the analysis holds the first mount"
	kill -TERM "$analysis" || fail "$1: the analysis has ended"
	wait "$analysis" || :
	grep -q interrupted "$work/out" || fail "$1: $(cat "$work/out")"
	"$refrain" umount "$work/two" || fail "$1: the second mount is held"
}

ls "$src" >"$work/names"
for propagation in rshared rprivate; do
	unmounts "$propagation"
done
[ -z "$(mounts_below "$work")" ] || fail "mounts are left"
echo PASS

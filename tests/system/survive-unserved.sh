#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The script with which systemd's unit ends a mount that nobody serves, tested
# without systemd: it does not wait for a daemon, and it ends the mount of
# daemons that are killed again and again as soon as they serve.
set -eu
name=survive-unserved
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse root
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'

script=$(cd "${srcdir:-.}" && pwd)/systemd/refrain-unserved
mount -t tmpfs tmpfs /run || skip 'cannot mount a tmpfs'
memory=/run/t.service.unserved
mkdir "$work/bin"
printf '#!/bin/sh\n' >"$work/bin/systemctl" # no job waits
chmod +x "$work/bin/systemctl"
PATH=$work/bin:$PATH

unserved() {
	timeout $((30 * patience)) sh "$script" "$@" >"$work/said"
}

# killed: kill the daemon; the next one cannot start yet.
killed() {
	SERVICE_RESULT=signal EXIT_STATUS=KILL unserved ended t.service
}

# field N [VALUE]: print or set a field of the file in which the script stores
# its counts.
field() {
	if [ $# -eq 1 ]; then
		awk -v n="$1" '{ print $n }' "$memory"
	else
		awk -v n="$1" -v v="$2" '{ $n = v; print }' "$memory" \
			>"$work/memory"
		cp "$work/memory" "$memory"
	fi
}

mnt="$work/a mount"
mkdir "$mnt"
before_cleanup() {
	umount -l "$mnt" 2>/dev/null || :
}
ln -s "$mnt" "$work/link"
echo it >"$src/is"
start_mount "$src" "$mnt" --cache "$work/cache:100M" --revalidate 1

# A daemon that does not answer does not block the script.
stop_process "$daemon"
stat_hangs() {
	! timeout 1 stat "$mnt" >"$work/stat" 2>&1
}
wait_for 20 stat_hangs || fail 'the kernel does not ask for the root'
unserved begun t.service "$work/link" || fail 'begun hangs'
expect 'the device' "$(field 5)" "$(awk \
	'/ - fuse\.refrain / && /a\\040mount/ { print $3 }' \
	/proc/self/mountinfo)"
expect 'the path' "$(field 6)" "$(printf %s "$mnt" | sed 's/ /\\040/')"

# A daemon that has served for a minute is not counted, but all later ones are.
field 4 500
field 3 $(($(field 3) - 61))
killed
expect 'in a row' "$(field 4)" 0
unserved begun t.service "$mnt"
killed
expect 'in a row' "$(field 4)" 1
[ -n "$(mounts_below "$work")" ] || fail 'two deaths end the mount'
field 4 998
unserved begun t.service "$mnt"
killed
[ -n "$(mounts_below "$work")" ] || fail 'it is ended too early'
unserved begun t.service "$mnt"
killed
[ -z "$(mounts_below "$work")" ] || fail 'a loop of deaths is not ended'
grep -q '1000 daemons in a row .* is ended' "$work/said" ||
	fail "it does not say why: $(cat "$work/said")"

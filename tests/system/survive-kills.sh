#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Readers survive the daemon (V1): it is killed at random moments while readers
# of every kind run, and none of them sees an error, a wrong byte or another
# inode, or hangs. Checked with FUSE_NOTIFY_RESEND and without it. The holder
# ends with the mount.
#
# REFRAIN_KILLS is the number of kills (30), and REFRAIN_SEED selects their
# moments. REFRAIN_UPGRADES is the number of upgrades (as many as kills),
# REFRAIN_OTHER the other program (a copy), and REFRAIN_NAMES the number of
# listed names (3000).
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
mkdir "$src/moving" "$src/stalled"
for i in 0 1; do
	head -c 60000 /dev/urandom >"$src/stalled/s$i"
done
bytes=$(tree_bytes "$src")

# held_mount OPTION ...: mount in the background, with a holder.
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

# under_load WHAT TIMES [PROGRAM]: kill the daemon, or upgrade it to the program
# and back, while readers run.
under_load() {
	what=$1
	times=$2
	shift 2
	# The files for which reads wait must not be cached.
	[ ! -e "$cache" ] || "$refrain" clear "$cache" >/dev/null
	held_mount --fault stall=1,match=stalled/
	python3 "$here/survive.py" "$refrain" "$mnt" "$src" "$times" "$seed" \
		"$@" >"$work/said" 2>&1 ||
		fail "$what: $(tail -n 30 "$work/said" "$work/log")"
	while read -r line; do
		note "$what: $line"
	done <"$work/said"
	expect 'recoveries' "$(status_field recoveries)" "$times"
	has_status held yes || fail 'it is not held'
	ends_with_mount
}

# refused WHY PROGRAM [OPTION ...]: check that an upgrade is refused and changes
# nothing.
refused() {
	why=$1
	shift
	! "$refrain" upgrade "$mnt" "$@" 2>"$work/err" || fail "upgraded: $*"
	grep -q "$why" "$work/err" || fail "$*: $(cat "$work/err")"
	expect 'recoveries' "$(status_field recoveries)" 0
	expect 'the daemon' "$(status_field pid)" "$pid"
}

mkdir "$work/bin"
cp "${REFRAIN_OTHER:-$refrain}" "$work/bin/refrain"
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	how=${REFRAIN_DISABLE:+without }RESEND
	under_load "kills, $how" "$kills"
	under_load "upgrades, $how" "${REFRAIN_UPGRADES:-$kills}" \
		"$work/bin/refrain"
done

# The holder is small. A program that cannot take over is refused, and so is a
# size that is too small.
held_mount
# Linked statically, the holder has a MiB.
rss=$(awk '/^VmRSS:/ { print $2 }' "/proc/$holder/status")
grep -q 'libc\.so' "/proc/$holder/maps" || [ "$rss" -le 1024 ] ||
	fail "the holder has $rss KiB"
refused 'not refrain' /bin/true
refused 'unrecognized option' /bin/ls
refused 'cannot find' "$work/nowhere"
refused 'holds .* bytes' --cache "$cache:4K"
refused 'not a cache of this mount\|of a cache of this mount' \
	--cache "$work/other:1G"
refused 'not a whole number' --timeout x
"$refrain" upgrade "$mnt" --log-level info --timeout 7 --cache "$cache:1G" ||
	fail 'options cannot be changed'
wait_for 10 grep -q 'info: the source is listed' "$work/log" ||
	fail "the level is as before: $(cat "$work/log")"
expect 'capacity' "$(status_field cache_capacity_bytes)" 1073741824

# recovered N: have N daemons followed the first one?
recovered() {
	wait_for 20 has_status recoveries "$1" || fail "$1: no daemon"
}
# Changed options are still set after a crash, and can be changed again, even by
# mount(8), which names all options.
: >"$work/log"
kill -9 "$(status_field pid)"
recovered 2
expect 'capacity after a crash' "$(status_field cache_capacity_bytes)" \
	1073741824
wait_for 10 grep -q 'info: the source is listed' "$work/log" ||
	fail "the level is lost: $(cat "$work/log")"
ln -s "$refrain" "$work/mount.refrain"
remount() {
	"$work/mount.refrain" "$src" "$mnt" -o "rw,remount,$1"
}
! remount "limit=64K" 2>"$work/err" || fail 'a limit is changed'
grep -q "'limit' cannot be changed" "$work/err" || fail "$(cat "$work/err")"
! remount "cache=$cache:4K" 2>"$work/err" || fail 'a size is too small'
grep -q 'holds .* bytes' "$work/err" || fail "$(cat "$work/err")"
recovered 2
remount "noatime,limit=128K,cache=$cache:2G,log-level=error" ||
	fail 'cannot remount'
recovered 3
: >"$work/log"
kill -9 "$(status_field pid)"
recovered 4
expect 'capacity after both' "$(status_field cache_capacity_bytes)" 2147483648
scan_through
! grep -q 'info:' "$work/log" || fail "the old level: $(cat "$work/log")"
ends_with_mount

# A program that says that it can go on, and ends when it should: the program of
# the holder does instead, and readers only wait.
cat >"$work/bin/dies" <<END
#!/bin/sh
for word; do
	case \$word in
	--check*) exec "$refrain" "\$@" ;;
	esac
done
echo >>"$work/died"
exit 1
END
chmod +x "$work/bin/dies"
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	rm -f "$work/died"
	held_mount
	exec 9<"$mnt/shard"
	program=$(readlink "/proc/$pid/exe")
	"$refrain" upgrade "$mnt" "$work/bin/dies" || fail 'it is refused'
	cmp - "$src/shard" <&9 || fail 'after a program that died'
	exec 9<&-
	[ -e "$work/died" ] || fail 'the program was not started'
	expect 'the program' "$(readlink "/proc/$(status_field pid)/exe")" \
		"$program"
	ends_with_mount
done
REFRAIN_DISABLE=

# SIGUSR2 ends the daemon, and the mount goes on with the next one.
held_mount
exec 9<"$mnt/shard"
kill -USR2 "$pid"
cmp -n 3000000 "$mnt/shard" "$src/shard" || fail 'the mount was not left'
cmp - "$src/shard" <&9 || fail 'an open file of a mount that was left'
exec 9<&-
expect 'recoveries' "$(status_field recoveries)" 1
expect 'the end of the first' "$(status_field last_end)" restart
holder=$(awk '/^PPid:/ { print $2 }' "/proc/$(status_field pid)/status")
ends_with_mount
# Without a holder, the mount ends.
"$refrain" mount "$src" "$mnt" --no-hold --cache "$cache:1G" ||
	fail 'cannot mount'
pid=$(status_field pid)
kill -USR2 "$pid"
wait_for 20 has_ended "$pid" || fail 'SIGUSR2 does not end a mount'
[ -z "$(mounts_below "$work")" ] || fail 'a mount of no daemon is left'

# A file that crashes the daemon: its reader gets an error, everything else
# continues.
for REFRAIN_DISABLE in '' resend; do
	export REFRAIN_DISABLE
	"$refrain" clear "$cache" >/dev/null
	bad=$(cd "$src" && find d* -size +40k | sort | head -n 1)
	held_mount --fault "crash=1,match=$bad"
	good=$(cd "$src" && find d* -size +40k | sort | tail -n 1)
	cmp "$src/$good" "$mnt/$good" || fail 'a good file'
	! timeout 60 cat "$mnt/$bad" >/dev/null 2>"$work/err" || fail 'no crash'
	grep -q 'Input/output error' "$work/err" || fail "$(cat "$work/err")"
	expect 'recoveries' "$(status_field recoveries)" 2
	! cat "$mnt/$bad" >/dev/null 2>&1 || fail 'it is served all at once'
	expect 'recoveries' "$(status_field recoveries)" 2
	wait_for 10 grep -q "error: .*'$bad' crashed the daemon twice" \
		"$work/log" ||
		fail "the log lacks it: $(tail "$work/log")"
	cmp "$src/$good" "$mnt/$good" || fail 'a good file after it'
	cmp "$src/shard" "$mnt/shard" || fail 'another file after it'
	ends_with_mount
done
REFRAIN_DISABLE=

# -- Where there is no way on ------------------------------------------------

# A daemon crashes each time that it serves: the holder gives up in limited
# time, and no program hangs.
held_mount --recover-timeout 3
cat >"$work/bin/ends" <<'END'
#!/bin/sh
exit 1
END
chmod +x "$work/bin/ends"
cat "$src"/d0/e0/f00000 >/dev/null
exec 9<"$mnt/shard"
kill -STOP "$holder"
wait_for 10 has_status held stopped ||
	fail 'a stopped holder is not shown'
kill -CONT "$holder"
kill -9 "$holder"
wait_for 10 has_status held lost ||
	fail 'a dead holder is not shown'
"$refrain" status "$mnt" | grep -q 'is not held any more' ||
	fail 'status does not warn'
cmp -n 1000 "$mnt/shard" "$src/shard" || fail 'it needs its holder'
kill -9 "$pid"
wait_for 10 has_ended "$pid" || fail 'the daemon does not end'
! cat <&9 >/dev/null 2>&1 || fail 'a file of a mount that nobody holds'
exec 9<&-
"$refrain" umount "$mnt" || fail 'cannot detach'

# flip NAME BYTE: flip one bit of the state that the holder keeps.
flip() {
	for fd in /proc/"$holder"/fd/*; do
		case $(readlink "$fd") in
		*"memfd:refrain-$1 "*)
			python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
at = int(sys.argv[2])
os.pwrite(fd, bytes([os.pread(fd, 1, at)[0] ^ 4]), at)' "$fd" "$2" ;;
		esac
	done
}

# A daemon does not continue with damaged state: the connection ends, and a new
# mount is made. The head of the record of requests follows 8191 slots of 512
# bytes.
for damage in 'session 17' 'session 120' 'names 33' 'names 20' \
	"requests $((8191 * 512))"; do
	case $damage in
	requests*) export REFRAIN_DISABLE=resend ;;
	esac
	held_mount
	exec 9<"$mnt/shard"
	# shellcheck disable=SC2086 # two words
	flip $damage
	kill -9 "$pid"
	! cat <&9 >/dev/null 2>&1 || fail "$damage: an old file is served"
	exec 9<&-
	wait_for 20 has_status ready true || fail "$damage: no new mount"
	expect "$damage: recoveries" "$(status_field recoveries)" 0
	cmp "$src/shard" "$mnt/shard" || fail "$damage: wrong bytes"
	wait_for 10 grep -q 'error: cannot go on with the mount' "$work/log" ||
		fail "$damage: $(cat "$work/log")"
	: >"$work/log"
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$(status_field pid)/status")
	ends_with_mount
done
REFRAIN_DISABLE=

# No other daemon can start, so the connection ends in time.
mkdir "$work/gone"
cp "$refrain" "$work/gone/refrain"
cp "$PWD/refrain-hold" "$work/gone/refrain-hold"
refrain_was=$refrain
refrain=$work/gone/refrain
held_mount --recover-timeout 2
refrain=$refrain_was
exec 9<"$mnt/shard"
rm "$work/gone/refrain"
begun=$(date +%s)
kill -9 "$pid"
! cat <&9 >/dev/null 2>&1 || fail 'it serves without a daemon'
took=$(($(date +%s) - begun))
[ $took -le $((6 * patience)) ] || fail "readers waited $took s"
wait_for 10 has_ended "$holder" || fail 'the holder goes on'
exec 9<&-
[ -z "$(mounts_below "$work")" ] || fail 'a dead mount is left'

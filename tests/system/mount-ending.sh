#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How a mount begins and ends: in the foreground and in the background, by
# signals in the middle of a cold epoch, by refrain umount and umount(8), with
# an origin that hangs, under systemd and as mount(8)'s helper. Whatever ends
# it, the daemon exits with 0 and leaves nothing but the cache.
set -eu
name=ending
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock unshare

sockets() {
	find "$XDG_RUNTIME_DIR" -name '*.sock'
}

# Nothing is left of the mount but a cache that is whole.
all_gone() {
	[ -z "$(mounts_below "$work")" ] || fail "$1: still mounted"
	[ -z "$(ls -A "$mnt")" ] || fail "$1: something in the mountpoint"
	[ -z "$(sockets)" ] || fail "$1: a socket stays"
	flock -n "$cache/refrain-lock" true || fail "$1: the lock is held"
	[ -z "$(find "$cache/tmp" -type f 2>/dev/null)" ] ||
		fail "$1: temporary files: $(ls "$cache/tmp")"
	"$refrain" verify "$cache" >"$work/verified" ||
		fail "$1: $(cat "$work/verified")"
}

# begin OPTION ...: a mount with a cache of its own.
begin() {
	cache=$short/cache.$((daemons + 1))
	start_mount "$src" "$mnt" --cache "$cache:200M" "$@"
}

more_than() {
	n=$(status_field "$1") && [ "${n:-0}" -gt "$2" ]
}

# read_on OPTION ...
read_on() {
	"$reader" "$mnt" --threads 8 "$@" >"$work/reader" 2>&1 &
	reading=$!
}

# Readers of a mount that went get errors, but they do end.
readers_end() {
	wait_for 10 reader_gone || fail "$1: the readers hang"
	wait $reading || :
}

reader_gone() {
	! kill -0 $reading 2>/dev/null
}

ended_within() {
	begin_s=$(date +%s)
	daemon_ended
	took=$(($(date +%s) - begin_s))
	[ $took -le $(($1 * patience)) ] || fail "the daemon took $took s"
}

make_tree "$src" 41 300 400000
"$reader" "$src" --make-sums "$work/sums" >/dev/null

# -- Signals in the middle of a cold epoch -----------------------------------

for how in TERM INT HUP TERM,tmpfile; do
	case $how in
	*,*) REFRAIN_DISABLE=${how#*,} && export REFRAIN_DISABLE ;;
	esac
	begin --fault delay=20ms
	unset REFRAIN_DISABLE
	scan_through
	read_on --sums "$work/sums"
	wait_for 10 more_than admitted 20 || fail "$how: no epoch"
	kill -s "${how%,*}" "$daemon"
	ended_within 5
	readers_end "$how"
	all_gone "$how"
	n=$(sed -n 's/^\([0-9]*\) entries.*/\1/p' "$work/verified")
	[ "$n" -ge 20 ] || fail "$how: only $n entries stay"
	[ "$n" -lt 300 ] || fail "$how: that was not in the middle"
	note "$how: ended in $took s with $n entries"
done

# -- While the origin hangs --------------------------------------------------

(cd "$src" && find . -type f -printf '%P\n') >"$work/all"
grep -v ^d3 "$work/all" >"$work/rest"
for list in all rest; do
	"$reader" "$src" --files-from "$work/$list" \
		--make-sums "$work/$list.sums" >/dev/null
done
for what in match=d3 meta=1,match=d3; do
	begin --fault stall=1,$what
	# A reader of names would hang at the first of them.
	list=all
	[ $what = match=d3 ] || list=rest
	read_on --threads 60 --files-from "$work/$list" \
		--sums "$work/$list.sums"
	ls "$mnt/d3/e0" >/dev/null 2>&1 &
	wait_for 10 more_than admitted 20 || fail "$what: no epoch"
	wait_for 10 more_than parked 0 || [ $what != match=d3 ] ||
		fail "$what: nothing hangs"
	kill "$daemon"
	ended_within 5
	readers_end $what
	all_gone $what
	note "stall=1,$what: ended in $took s"
done

# The requests have been given up, but the origin still has them.
begin --fault stall=1,meta=1,match=d3 --timeout 2
ls "$mnt/d3" >/dev/null 2>&1 && fail 'a listing that nobody answers'
more_than origin_failures 0 || fail 'nothing was given up'
kill "$daemon"
ended_within 5
all_gone 'given up'
note "given up: ended in $took s"

# The start itself waits for it.
for how in --foreground ''; do
	cache=$work/cache.hangs
	# shellcheck disable=SC2086 # an option, or none
	timeout $((30 * patience)) "$refrain" mount $how "$src" "$mnt" \
		--cache "$cache:200M" --fault meta=1,stall=1 \
		>"$work/said" 2>&1 &
	starting=$!
	wait_for 10 test -e "$cache/refrain-tier" || fail "$how: no start"
	kill "$(cat "$cache/refrain-lock")"
	wait_for 5 has_ended $starting || fail "$how: it goes on waiting"
	got=0
	wait $starting || got=$?
	expect "exit status of a start that was stopped" $got 1
	grep -q "^refrain: mount: .*'$src' did not answer" "$work/said" ||
		fail "it says: $(cat "$work/said")"
	[ ! -e "$cache" ] || fail "$how: a cache is left"
	[ -z "$(sockets)" ] || fail "$how: a socket stays"
done

# -- umount ------------------------------------------------------------------

# ends STATUS TEXT COMMAND ...
ends() {
	want=$1
	text=$2
	shift 2
	got=0
	"$@" >"$work/out" 2>&1 || got=$?
	expect "$*: $(cat "$work/out")" $got "$want"
	[ -z "$text" ] || [ "$(grep -c "$text" "$work/out")" -eq 1 ] ||
		fail "$*: $(cat "$work/out")"
	[ "$(wc -l <"$work/out")" -le 1 ] || fail "$*: $(cat "$work/out")"
}

big=$(cd "$src" && find . -type f -size +300k -printf '%P\n' | sort | head -n 1)
begin
exec 3<"$mnt/$big"
ends 1 "^refrain: umount: '$mnt' is busy: .*--lazy" "$refrain" umount "$mnt"
has_status ready true || fail 'a refused umount harms'
ends 0 '' "$refrain" umount --lazy "$mnt"
[ -z "$(mounts_below "$work")" ] || fail 'still mounted after --lazy'
cmp - "$src/$big" <&3 || fail 'wrong bytes after --lazy'
daemon_gone && fail 'the daemon of an open file has gone'
exec 3<&-
ended_within 5
all_gone --lazy
begin
umount "$mnt"
ended_within 5
all_gone 'umount(8)'
begin
read_on --sums "$work/sums"
wait "$reading" || fail "an epoch: $(cat "$work/reader")"
stop_mount
all_gone 'refrain umount'

# -- In the background -------------------------------------------------------

# The pipe of this substitution ends only if the daemon has closed it.
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

# -- Under systemd -----------------------------------------------------------

python3 - "$work/notify" >"$work/notified" <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    text = s.recv(4096).decode()
    print(text, flush=True)
    if 'STOPPING=1' in text:
        break
END
listener=$!
wait_for 10 test -S "$work/notify" || fail 'no socket to notify'
NOTIFY_SOCKET=$work/notify
export NOTIFY_SOCKET
begin
unset NOTIFY_SOCKET
wait_for 10 grep -q READY=1 "$work/notified" || fail 'systemd is told nothing'
expect 'what systemd is to keep' "$(grep '^FDNAME=' "$work/notified")" \
	"FDNAME=refrain-fuse
FDNAME=refrain-session
FDNAME=refrain-names"
expect 'what systemd is told' "$(tail -n 1 "$work/notified")" READY=1
stop_mount
wait $listener
expect 'what systemd is told' "$(tail -n 1 "$work/notified")" STOPPING=1
all_gone systemd

# -- As mount(8)'s helper ----------------------------------------------------

cache=$work/cache.10
ln -s "$refrain" "$work/mount.refrain"
"$work/mount.refrain" "$src" "$mnt" -s \
	-o "rw,cache=$cache:200M,limit=1M,noauto,x-systemd.automount,what=ever"
sums_right "$src.sums" "$mnt"
umount "$mnt"
wait_for 10 flock -n "$cache/refrain-lock" true ||
	fail 'the daemon does not end'
all_gone 'mount.refrain'
ends 2 "^refrain: mount: unknown option 'what=ever'" \
	"$work/mount.refrain" "$src" "$mnt" -o "cache=$cache:1M,what=ever"

# Where mount(8) looks for helpers there is one only in there.
cat >"$work/helper.sh" <<'END'
set -e
mount -t tmpfs none "$1/over"
mkdir "$1/over/up" "$1/over/work"
mount -t overlay overlay \
	-o "lowerdir=/sbin,upperdir=$1/over/up,workdir=$1/over/work" /sbin ||
	exit 77
ln -s "$2" /sbin/mount.refrain
mount -t refrain "$1/src" "$1/mnt" -o "cache=$1/cache.11:200M,allow_other"
(cd "$1/mnt" && sha256sum --quiet --strict -c "$1/src.sums")
grep " $1/mnt ro,nosuid,nodev.* - fuse.refrain $1/src " /proc/self/mountinfo
umount "$1/mnt"
END
mkdir "$work/over"
got=0
unshare -m --propagation private sh "$work/helper.sh" "$work" "$refrain" \
	>"$work/out" 2>&1 || got=$?
if [ $got -eq 77 ]; then
	note "mount -t refrain not tried: $(tail -n 1 "$work/out")"
else
	[ $got -eq 0 ] || fail "mount -t refrain: $(cat "$work/out")"
	cache=$work/cache.11
	wait_for 10 flock -n "$cache/refrain-lock" true ||
		fail 'it does not end'
	all_gone 'mount -t refrain'
fi

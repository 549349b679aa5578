#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill -9 at any moment: while it starts, while readers fill the cache, while
# it looks for changes, while it ends. The next mount detaches the dead one,
# gives right bytes at once, keeps to its budget, and leaves no file in its
# caches that is not theirs. mount-kill-swept.sh checks that old versions are
# removed.
#
# REFRAIN_KILLS is the number of kills (15), and REFRAIN_SEED selects their
# moments.
set -eu
name='mount-kill'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

# shellcheck source=tests/system/mount-kill-lib.sh
. "${srcdir:-.}/tests/system/mount-kill-lib.sh"

kills=${REFRAIN_KILLS:-15}
first_seed=${REFRAIN_SEED:-$(date +%N | sed 's/^0*//')}
seed=${first_seed:-1}
here=$(cd "$(dirname "$0")" && pwd)
note "seed $seed, $kills times; again with REFRAIN_SEED=$seed"

# draw N: set $drawn to a random number from 0 to N - 1.
draw() {
	seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
	drawn=$(((seed >> 12) % $1))
}

ms() {
	printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# change_source: give some files other bytes and another size.
change_source() {
	for _ in 1 2 3 4; do
		draw "$(wc -l <"$work/files")"
		file=$(sed -n "$((drawn + 1))p" "$work/files")
		draw 300000
		head -c $((drawn + 1)) /dev/urandom >"$work/new"
		mv "$work/new" "$src/$file"
	done
	"$reader" "$src" --make-sums "$sums" >/dev/null
}

# -- What goes on when it is killed -------------------------------------------

# readers [SUMS]: read until $work/dead exists, because the kernel serves cached
# pages even when the daemon is gone. Check the sums if they are given.
readers() {
	for n in 1 2; do
		while [ ! -e "$work/dead" ] &&
			"$reader" "$mnt" --threads 3 --seed $n \
			--files-from "$work/files" \
			${1:+--sums "$1"} >>"$work/read.$n" 2>&1; do
			:
		done &
	done
	wait
}

# pieces: read half of a file that no other reader reads.
pieces() {
	while [ ! -e "$work/dead" ] &&
		python3 "$here/cache_parts.py" "$mnt" "$src" 16384 \
			"$seed" 2 shard >>"$work/read.1" 2>&1; do
		:
	done
}

# parts_there: have chunks parts, with their bytes and their maps?
parts_there() {
	find "$fast" "$slow" -name '*-65544' | wc -l
}

has_parts() {
	[ "$(parts_there)" -gt 0 ]
}

# busy: do the other things that a program can do with a mount.
busy() {
	case $1 in
	warm) "$refrain" warm "$mnt" ;;
	refresh) "$refrain" refresh "$mnt" ;;
	umount) "$refrain" umount "$mnt" ;;
	esac >/dev/null 2>&1 || :
}

killed_while() {
	: >"$work/read.1"
	: >"$work/read.2"
	rm -f "$work/dead"
	delay=1
	draw 3
	[ "$drawn" -gt 0 ] || delay=0
	mount_it --fault "delay=${delay}ms"
	if [ "$1" = start ]; then
		draw 60
		sleep "$(ms "$drawn")"
		kill_mount
		return
	fi
	wait_for 20 is_mounted || fail 'no mount'
	compare=$sums
	[ "$1" != refresh ] || compare=
	if [ "$1" = pieces ]; then
		pieces &
	else
		readers "$compare" &
	fi
	load=$!
	[ "$1" != pieces ] || wait_for 20 has_parts || fail 'no parts'
	draw 250
	[ "$1" != umount ] || sleep "$(ms "$drawn")"
	busy "$1" &
	doing=$!
	draw 250
	[ "$1" != umount ] || drawn=$((drawn / 8))
	sleep "$(ms "$drawn")"
	kill_mount 2>/dev/null || : # the daemon may have ended already
	: >"$work/dead"
	wait_for 20 ended "$load" "$doing" || fail 'somebody hangs'
	wait "$load" "$doing" || :
	parts=$((parts + $(parts_there)))
	[ "$1" = refresh ] || # files have other sizes than the listed ones
		! grep -h -e 'contents differ' -e 'wrong bytes' \
			"$work/read.1" "$work/read.2" ||
		fail 'wrong bytes before the kill'
}

ended() {
	for pid; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

# -- The next mount -----------------------------------------------------------

# remounted WHILE: check the next mount as soon as it is there.
remounted() {
	mount_it
	wait_for 20 is_mounted || fail 'no mount after the kill'
	! daemon_gone || fail 'the daemon did not start after the kill'
	if [ "$1" = refresh ]; then
		"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
	fi
	read_right
	all_right
}

clear_tiers() {
	for dir in "$fast" "$slow"; do
		[ ! -e "$dir/refrain-tier" ] ||
			"$refrain" clear "$dir" >/dev/null ||
			fail "cannot clear $dir"
	done
}

# prepare: change the caches for the next start: empty them, make holes, or
# leave them.
prepare() {
	draw 4
	case $drawn in
	0) clear_tiers ;;
	1)
		find "$fast" "$slow" -mindepth 2 -path '*[0-7]-*' -delete ||
			: # there is no daemon yet
		;;
	esac 2>/dev/null
	draw 3
	export REFRAIN_DISABLE=
	[ "$drawn" -gt 0 ] || REFRAIN_DISABLE=tmpfile
}

round=0
parts=0
while [ $round -lt "$kills" ]; do
	round=$((round + 1))
	prepare
	draw 7
	what=$(echo start read read warm refresh umount pieces |
		cut -d ' ' -f $((drawn + 1)))
	# Without room in the tiers there are no parts.
	[ "$what" != pieces ] || clear_tiers
	[ "$what" != refresh ] || change_source
	note "$round: $what"
	killed_while "$what"
	remounted "$what"
	draw 2
	if [ "$drawn" -eq 0 ]; then stop_mount; else kill_mount; fi
done
[ -z "$daemon" ] || stop_mount
all_cached
note "$round times killed; $parts parts of chunks were there then"

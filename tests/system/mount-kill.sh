#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kill -9 at any moment: while it starts, while readers fill the cache, while
# it looks for changes, while it ends. The next mount detaches the dead one,
# gives right bytes at once, keeps to its budget, and leaves no file in its
# caches that is not theirs. mount-kill-swept.sh has what is left of versions
# that ceased.
#
# REFRAIN_KILLS is how many times (15), REFRAIN_SEED which moments.
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

# draw N: $drawn is one of 0 to N - 1.
draw() {
	seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
	drawn=$(((seed >> 12) % $1))
}

ms() {
	printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# change_source: some files get other bytes and another size.
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

# Until there is $work/dead: the kernel goes on with what it has in its caches
# when the daemon is gone. $1 has the sums, or nothing.
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

# Half of a file that nobody else reads.
pieces() {
	while [ ! -e "$work/dead" ] &&
		python3 "$here/cache_parts.py" "$mnt" "$src" 16384 \
			"$seed" 2 shard >>"$work/read.1" 2>&1; do
		:
	done
}

# Parts of chunks: their bytes, and a map of them.
parts_there() {
	find "$fast" "$slow" -name '*-65544' | wc -l
}

has_parts() {
	[ "$(parts_there)" -gt 0 ]
}

# The rest of what one can do to a mount.
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
	kill_mount 2>/dev/null || : # it may have ended already
	: >"$work/dead"
	wait_for 20 ended "$load" "$doing" || fail 'somebody hangs'
	wait "$load" "$doing" || :
	parts=$((parts + $(parts_there)))
	[ "$1" = refresh ] || # files have another size than was listed
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

# remounted WHILE: the next mount, as soon as it is there.
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

# Another start: from nothing, with holes, or as it is.
prepare() {
	draw 4
	case $drawn in
	0) clear_tiers ;;
	1)
		find "$fast" "$slow" -mindepth 2 -path '*[0-7]-*' -delete ||
			: # there is none yet
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
	# Where there is no room there are no parts.
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

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount ends while its origin hangs: with readers that wait, with listings
# that wait, after requests were given up, and while it starts. Only the cache
# is left.
set -eu
name=mount-hung-ends
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 flock
# shellcheck source=tests/system/mount-end-lib.sh
. "$(dirname "$0")/mount-end-lib.sh"

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

# The start of the mount waits for the origin.
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

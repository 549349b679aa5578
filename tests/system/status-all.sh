#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain status --all` and `refrain top`: all mounts and shares of the host,
# even beside dead and hung ones, which delay nothing. Mounts whose readers wait
# longest come first, and the screen follows changes.
set -eu
name='status-all'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/several-lib.sh
. "$(dirname "$0")/several-lib.sh"
requires root fuse python3
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'

head -c 100000 /dev/urandom >"$src/a"
head -c 100000 /dev/urandom >"$src/b"

# mount_one NAME OPTION ...: mount the source with a cache of 10 MiB.
mount_one() {
	called=$1
	shift
	mount_at "$called" "$src" --cache "$work/cache.$called:10M" "$@"
}

# sees EXPRESSION: check a Python expression about `status --all --json`. `all`
# is the list of mounts; `state` and `status` are those of each mount.
sees() {
	"$refrain" status --all --json >"$work/all.json" 2>"$work/err" || :
	python3 - "$work" "$1" <<'END'
import json, os, sys
seen = json.load(open(sys.argv[1] + '/all.json'))
names = [os.path.basename(m['mountpoint']) for m in seen['mounts']]
state = {n: m['state'] for n, m in zip(names, seen['mounts'])}
status = {n: m.get('status') for n, m in zip(names, seen['mounts'])}
why = {n: m.get('why', '') for n, m in zip(names, seen['mounts'])}
shares = seen['shares']
sys.exit(not eval("(%s)" % sys.argv[2]))
END
}

shows() {
	sees "$1" || fail "not $1: $("$refrain" status --all)"
}

note 'no mount'
"$refrain" status --all >"$work/out" || fail 'no mounts are a failure'
grep -q '^0 mounts; 0 shares' "$work/out" || fail "said: $(cat "$work/out")"

note 'mounts that are up, and readers that wait'
mount_one one
mount_one two --fault stall=1,match=a
mount_one three --fault stall=1,match=b
cat "$work/m/one/a" >/dev/null
"$refrain" status --all >"$work/out" || fail 'healthy mounts are a failure'
[ "$(wc -l <"$work/out")" -eq 5 ] || fail "lines: $(cat "$work/out")"
cat "$work/m/three/b" >/dev/null 2>&1 &
wait_for 20 sees 'status["three"]["parked"] > 0' || fail 'nobody waits'
cat "$work/m/two/a" >/dev/null 2>&1 &
wait_for 20 sees 'status["two"]["parked"] > 0' || fail 'nobody waits'
shows 'names == ["three", "two", "one"]'
shows 'status["three"]["parked_longest_ms"] >
	status["two"]["parked_longest_ms"] > 0'
shows 'status["one"]["parked_longest_ms"] == 0'

note 'dead and hung ones'
mount_one dead
mount_one still1
mount_one still2
mount_one still3
mount_one still4
kill -9 "$(pid_of dead)"
wait_for 20 has_ended "$(pid_of dead)" || fail 'the daemon does not die'
for n in 1 2 3 4; do
	stop_process "$(pid_of still$n)"
done
begun=$(date +%s%N)
shows 'state == {"one": "up", "two": "up", "three": "up", "dead": "dead",
	"still1": "hung", "still2": "hung", "still3": "hung", "still4": "hung"}'
took=$((($(date +%s%N) - begun) / 1000000))
# If they were asked one after the other, this would take 12 s.
[ $took -lt $((3000 * patience)) ] || fail "it took $took ms"
shows 'names[0] == "dead" and names[-1] == "one"'
shows 'why["dead"].endswith("/dead'"'"'")'
shows '"kill -CONT '"$(pid_of still1)"'" in why["still1"]'
got=0
"$refrain" status --all >"$work/out" || got=$?
expect 'the status of the command' $got 1
grep -q '^8 mounts: 3 up, 4 hung, 1 dead; 0 shares' "$work/out" ||
	fail "said: $(cat "$work/out")"

note 'a screen that follows'
"$refrain" top >"$work/top" 2>"$work/err" &
top=$!
# last_screen_has PATTERN: check the last complete screen.
last_screen_has() {
	awk -v RS= '{ before = last; last = $0 } END { print before }' \
		"$work/top" | grep -q "$1"
}
wait_for 20 last_screen_has '^hung .*/m/still1: ' || fail 'no hung mount'
kill -CONT "$(pid_of still1)"
wait_for 20 last_screen_has '^up .*/m/still1$' || fail 'it stays hung'
wait_for 20 last_screen_has '^STATE .* CACHE/s ' || fail 'no rates'
umount -l "$work/m/dead"
mount_one new
wait_for 20 last_screen_has '^up .*/m/new$' || fail 'no new mount'
! last_screen_has '/m/dead$' || fail 'the mount is still there'
kill -9 "$(pid_of new)"
wait_for 20 last_screen_has '^dead .*/m/new: ' || fail 'it does not die'
kill $top
wait $top 2>/dev/null || :
"$refrain" top -n 2 >"$work/out" || fail 'top fails'
expect 'the screens of -n 2' "$(grep -c '^STATE' "$work/out")" 2

note 'a bind mount, and a mount that hides another'
mkdir "$work/bound"
mount --bind "$work/m/one" "$work/bound"
shows 'names.count("one") == 1 and "bound" not in names'
umount "$work/bound"

note 'wrong usage'
for words in '' '--all --prometheus' '--all --debug' "--all $work/m/one"; do
	got=0
	# shellcheck disable=SC2086 # a list of words
	"$refrain" status $words >"$work/out" 2>"$work/err" || got=$?
	expect "status $words" $got 2
done
got=0
"$refrain" top -d 0 2>"$work/err" || got=$?
expect 'top -d 0' $got 2
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tools/refrain-gdb.py under gdb: it shows the fill of a file that hangs at the
# origin, with its readers and its request, as `status --debug` does; and the
# servings of a step that a loader makes.
set -eu
name=gdb
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse gdb python3

# gdb_with OPTION ...: run gdb; its output is in $work/gdb.
gdb_with() {
	timeout -s KILL $((120 * patience)) gdb -nx -batch \
		-iex 'set debuginfod enabled off' -iex 'set confirm off' \
		-x "${srcdir:-.}/tools/refrain-gdb.py" "$@" \
		>"$work/gdb" 2>"$work/gdb.err" </dev/null || :
}

# look COMMAND ...: run gdb commands on the daemon.
look() {
	for command; do
		set -- "$@" -ex "$command"
		shift
	done
	gdb_with -p "$daemon" "$@"
	! grep -qi 'ptrace: Operation not permitted' "$work/gdb.err" ||
		skip 'gdb may not attach to a process'
}

# shows PATTERN ...: check that a line of gdb's output matches each pattern.
shows() {
	for pattern; do
		grep -qE "$pattern" "$work/gdb" || {
			cat "$work/gdb" "$work/gdb.err"
			fail "gdb does not show: $pattern"
		}
	done
}

# -- A mount ------------------------------------------------------------------
# shellcheck source=tests/system/status-debug-lib.sh
. "$(dirname "$0")/status-debug-lib.sh"
wait_for 10 is "d['fills'] == 0" || fail 'a fill stays'
look refrain-fill
shows "^MOUNT $mnt: 0 fills, 0 reads parked, 0 requests\$"

"$refrain" fault "$mnt" stall=1,match=hang/
cat "$mnt/hang/a" >"$work/a" &
reader=$!
ends_with_test $reader
wait_for 10 is "d['requests'] == 1 and d['readers_wait'] >= 1" ||
	fail "no reader waits: $(debug d)"
look refrain-fill 'refrain-fill 1 + 1'
shows "^MOUNT $mnt: 1 fills, [1-9][0-9]* reads parked, 1 requests\$" \
	'^FILL 0x[0-9a-f]*: fetching, demand: 200000 bytes at 0 of hang/a$' \
	'^  [0-9]* references, made [0-9.]* s; claim asked, offer none, ' \
	'^  49 pages: 0 present, 0 wanted, 0 served, 0 in a part$' \
	'^  pages 0-48 inflight$' '^  [1-9][0-9]* reads parked$' \
	'^    [0-9]* bytes at 0, for [0-9.]* s$' '^  1 requests$' \
	'FETCH .* to the origin: pages 0-48, 0 of 200000 bytes came, for [0-9]'
expect 'reads shown' "$(grep -c '^    [0-9]* bytes at ' "$work/gdb")" \
	"$(sed -n 's/^  \([0-9]*\) reads parked$/\1/p' "$work/gdb")"
grep -q '1 + 1 is not a struct fill' "$work/gdb.err" ||
	fail "an expression of another type: $(cat "$work/gdb.err")"

# Print one fill by its address, as the list shows it.
fill=$(sed -n 's/^FILL \(0x[0-9a-f]*\):.*/\1/p' "$work/gdb")
look "refrain-fill (struct fill *)$fill"
shows "^FILL $fill: fetching" '^  pages 0-48 inflight$'

"$refrain" fault "$mnt" ''
wait "$reader" || fail 'the reader'
cmp "$work/a" "$src/hang/a"
stop_mount

# -- A loader -----------------------------------------------------------------
# gdb stops its only worker at the first example of the first batch.
"$refrain" make-dataset "$work/data" --classes 2 --images 40 --size 64x64 \
	>/dev/null
XDG_CACHE_HOME=$work/cache
REFRAIN_DISABLE=io_uring
export XDG_CACHE_HOME REFRAIN_DISABLE
gdb_with -ex 'break serving_make' -ex run -ex refrain-step \
	-ex 'refrain-step s->step' -ex refrain-fill -ex kill \
	--args "$refrain" load "$work/data" --batch 40 --epochs 1 --size 32 \
	--seed 5 --threads 1
! grep -q 'Could not trace\|ptrace' "$work/gdb.err" ||
	skip 'gdb may not start a process'
shows '^LOADER: 1 steps from 0 on, of at most [1-9]' \
	'^STEP 0 at 0x[0-9a-f]*, of epoch 0: 40 servings, 40 fresh, 40 left' \
	'^    place [0-9]* works: example [0-9]*, original working since [0-9.]'
expect 'steps shown' "$(grep -c '^STEP 0 ' "$work/gdb")" 2
expect 'servings shown' "$(grep -c '^    place [0-9]* [a-z]*:' "$work/gdb")" 80
expect 'servings that are made' "$(grep -c ' works: ' "$work/gdb")" 2
grep -q 'no frame of this process has a struct mount' "$work/gdb.err" ||
	fail "a loader is no mount: $(cat "$work/gdb.err")"

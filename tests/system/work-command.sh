#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain work: starts without a board and without work, ends on request or when
# it has been idle, and reports wrong arguments.
. "$(dirname "$0")/lib.sh"
requires memcached python3 timeout

data=$work/data
"$refrain" make-dataset --classes 2 --images 8 --size 32x32 "$data" >/dev/null

# refused TEXT ARGUMENT ...: check that the arguments are refused with a message
# that contains TEXT.
refused() {
	text=$1
	shift
	status=0
	"$refrain" work "$@" 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] || fail "status $status for $*"
	grep -q -- "$text" "$work/err" || fail "$(cat "$work/err")"
}
refused 'NAME=PATH' "$short/board" --dataset set
refused 'is not a host' 'a b' --dataset "set=$data"
refused 'valid name' "$short/board" --dataset "s/t=$data"
refused 'dataset' "$short/board"

status=0
"$refrain" work "$short/board" --dataset "set=$work/none" 2>"$work/err" ||
	status=$?
[ "$status" -eq 1 ] || fail "status $status for a dataset that is not there"

# The board does not answer: the worker waits, and ends after a second.
timeout $((60 * patience)) "$refrain" work "$short/board" \
	--store "$short/store" --dataset "set=$data" --threads 1 \
	--exit-idle 1 >"$work/out" ||
	fail 'it does not end when idle'
grep -q '^made 0 ranges' "$work/out" || fail "$(cat "$work/out")"

# The board has no jobs, but the record of the worker.
as_root=
[ "$(id -u)" -ne 0 ] || as_root='-u root'
# shellcheck disable=SC2086 # two words
memcached -s "$short/board" -m 64 -t 1 $as_root &
board=$!
ends_with_test "$board"
"$refrain" work "$short/board" --store "$short/store" --dataset "set=$data" \
	--threads 1 >"$work/out" &
worker=$!
ends_with_test "$worker"
listed() {
	printf 'get rs1:workers\r\nquit\r\n' |
		python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.stdin.buffer.read())
sys.stdout.buffer.write(s.makefile("rb").read())' "$short/board" 2>/dev/null |
		grep -q '^w[0-9a-f]'
}
wait_for 30 listed || fail 'the worker is not in the list'
kill "$worker"
wait "$worker" || fail 'it does not end on SIGTERM'

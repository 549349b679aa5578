# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of the preparation service; sourced after load-lib.sh. A board, a
# store and workers, on sockets in $short.
board=$short/board
store=$short/store
as_root=
[ "$(id -u)" -ne 0 ] || as_root='-u root'

answers() {
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"version\r\n")
sys.exit(not s.recv(100).startswith(b"VERSION"))' "$1" 2>/dev/null
}

# start_board, start_store: their processes are $board_pid and $store_pid.
start_board() {
	rm -f "$board"
	# shellcheck disable=SC2086 # two words
	memcached -s "$board" -m 64 -t 1 $as_root &
	board_pid=$!
	ends_with_test "$board_pid"
	wait_for 30 answers "$board" || fail 'no board'
}
start_store() {
	rm -f "$store"
	# shellcheck disable=SC2086 # two words
	memcached -s "$store" -m 64 -t 1 -M \
		-o no_slab_reassign,slab_chunk_max=16384 $as_root &
	store_pid=$!
	ends_with_test "$store_pid"
	wait_for 30 answers "$store" || fail 'no store'
}

# start_worker [DATASET]: its process is $worker.
start_worker() {
	"$refrain" work "$board" --store "$store" \
		--dataset "set=${1:-$data}" --threads 1 >>"$work/workers" 2>&1 &
	worker=$!
	ends_with_test "$worker"
}

# with_service OPTION ...: like load, with the service.
with_service() {
	load --service "$board" --service-dataset set "$@"
}

# same OPTION ...: with the service the loader has the same stream and pixels as
# without it, and some of the samples come from workers: if not, because the
# machine is busy, the trainer is slower in the next try.
same() {
	about="with $*"
	load "$@"
	lone=$(hashes) served=$(value served)
	for step_ms in 20 40 80 160 320; do
		with_service --step-ms $step_ms "$@"
		expect "$about" "$(hashes)" "$lone"
		is served "$served"
		is service_bad 0
		[ "$(value service_remote)" -eq 0 ] || return 0
	done
	fail "$about: nothing is remote"
}

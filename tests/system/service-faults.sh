#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Workers, the store and the board are stopped, killed and restarted while a
# loader runs: its stream and its pixels are those of a lone loader, and it does
# not wait long for any batch.
set -eu
name=service-faults
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires memcached python3
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"
# shellcheck source=tests/system/service-lib.sh
. "$(dirname "$0")/service-lib.sh"

epochs=6
about=faults
load --echo 2
lone=$(hashes)

start_board
start_store
start_worker
first=$worker
start_worker

# The loader runs in the background; a fault about each half second.
with_service --echo 2 --step-ms 25 --timeout 20 &
loader=$!
gone() { ! kill -0 "$loader" 2>/dev/null; }
pause() { wait_for "$1" gone || :; }
pause 1
kill -9 "$first"
pause 1
kill -STOP "$store_pid"
pause 1
kill -CONT "$store_pid"
kill -9 "$store_pid"
wait "$store_pid" || :
pause 1
start_store
start_worker
kill -STOP "$board_pid"
pause 1
kill -CONT "$board_pid"
kill -9 "$board_pid"
wait "$board_pid" || :
pause 1
start_board
kill -STOP "$worker"
pause 1
kill -CONT "$worker"
wait "$loader" || fail 'the loader fails'
expect 'with faults' "$(hashes)" "$lone"
[ "$(value service_remote)" -gt 0 ] || fail 'nothing is remote'

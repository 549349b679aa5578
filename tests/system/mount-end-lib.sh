# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of how a mount ends; sourced after lib.sh. Makes a source of 300
# files, whose sums for the reader are in $work/sums.

sockets() {
	find "$XDG_RUNTIME_DIR" -name '*.sock'
}

# all_gone: check that nothing is left of the mount except a complete cache.
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

# begin OPTION ...: start a mount with a cache of its own.
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

# readers_end: wait for the readers of a mount that has ended. They may get
# errors, but they must end.
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

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of the daemon's log; sourced after lib.sh. Makes a source of 20
# files; $log is the log of a mount with $cache.
cache=$work/cache
log=$work/log

# logged PATTERN [FILE]
logged() {
	grep -q -e "$1" "${2:-$log}"
}

must_log() {
	wait_for 20 logged "$@" || {
		cat "${2:-$log}"
		fail "not logged: $1"
	}
}

must_not_log() {
	! logged "$@" || fail "logged: $(grep -e "$1" "${2:-$log}" | head -n 1)"
}

mount_logged() {
	start_mount "$src" "$mnt" --cache "$cache:1M" --log-file "$log" \
		--log-level info "$@"
}

refault() {
	"$refrain" fault "$mnt" "$1" || fail "cannot set the fault '$1'"
}

# epoch: read every file. Some reads may fail, after the time of --timeout.
epoch() {
	find "$mnt" -type f -print0 |
		xargs -0 -n 1 -P 32 cat >/dev/null 2>"$work/failed"
}

make_files() {
	i=0
	while [ $i -lt 20 ]; do
		head -c 20000 /dev/urandom >"$src/f$i"
		i=$((i + 1))
	done
}

make_files

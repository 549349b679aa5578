# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # variables are shared
#
# For tests with several mounts at a time; sourced after lib.sh.

has_status_at() {
	[ "$(status_field ready "$1" 2>/dev/null)" = true ]
}

# mount_at NAME SOURCE OPTION ...: mount at $work/m/NAME; `pid_of NAME` prints
# the process of its daemon.
mount_at() {
	called=$1 from=$2
	at=$work/m/$1
	shift 2
	mkdir -p "$at"
	"$refrain" mount --foreground --no-hold "$from" "$at" "$@" \
		2>>"$work/daemon.$called.err" &
	echo $! >"$work/pid.$called"
	wait_for 20 has_status_at "$at" || fail "no mount at $at"
}

pid_of() {
	cat "$work/pid.$1"
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of reports to an operator about incidents; sourced after lib.sh.
# $log is the log of the mount.
log=$work/log

logged() {
	[ "$(grep -c -e "$1" "$log")" -ge "${2:-1}" ]
}

must_log() {
	wait_for 20 logged "$@" || {
		cat "$log"
		fail "not logged ${2:-1} times: $1"
	}
}

shows() {
	"$refrain" status "$mnt" >"$work/status" && grep -qE "$1" "$work/status"
}

must_show() {
	wait_for 20 shows "$1" || {
		cat "$work/status"
		fail "status does not show: $1"
	}
}

shows_no_error() {
	"$refrain" status "$mnt" >"$work/status" &&
		! grep -q '^  errors' "$work/status"
}

is_well() {
	wait_for 20 shows_no_error || {
		cat "$work/status"
		fail 'status shows an error that has ended'
	}
}

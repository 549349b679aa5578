# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of rare answers of a store; sourced after far-lib.sh. Starts a store
# of 40 files.
s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --endpoint-url "$far" "$@"
}

end_mount() {
	stop_mount
	rm -rf "$work/tier"
}

# logs TEXT: wait until the log contains TEXT.
logs() {
	wait_for 10 grep -q "$1" "$daemon_err" || fail "the log lacks: $1"
}

far_start files=40 size=100000

# ends_with SETTING FILE ERROR: check that reading FILE ends with ERROR while
# the setting is changed.
ends_with() {
	far_set "$1"
	cat "$mnt/$2" >"$work/got" 2>"$work/said" && fail "$1: no error"
	[ ! -s "$work/got" ] || fail "$1: bytes were served"
	grep -q "$3" "$work/said" || fail "$1: $(cat "$work/said")"
	far_set "${1%%=*}=0"
}

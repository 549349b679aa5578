# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of stores that lie, move or disappear; sourced after far-lib.sh.
# Starts a store of 64 files. second_far: start another stand-in; $second is its
# URL.
second_far() {
	tests/system/far files=64 size=100000 >"$work/far2.out" </dev/null &
	second_pid=$!
	ends_with_test $second_pid
	wait_for 10 test -s "$work/far2.out" || fail 'no second stand-in'
	second=http://127.0.0.1:$(cat "$work/far2.out")
}

second_count() {
	curl -sf --noproxy '*' "$second/-/stats" |
		awk -v n="$1" '$1 == n { print $2 }'
}

s3_mount() {
	what=$1
	shift
	start_mount "s3://$what" "$work/mnt" --cache "$work/tier:200M" \
		--endpoint-url "$far" "$@"
}

end_mount() {
	stop_mount
	rm -rf "$work/tier"
}

far_start --port "$(free_port)" files=64 size=100000

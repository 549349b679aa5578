# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of caches that outlive their mounts; sourced after lib.sh. Makes a
# source of $bytes bytes, whose sums are in $work/sums.
# shellcheck disable=SC2120 # some tests have options
start() {
	start_mount "$src" "$mnt" --cache "$work/fast:20M" \
		--cache "$work/slow:50M" "$@"
}

# epoch WANT: read everything, and check that the origin gives WANT bytes.
epoch() {
	before=$(status_field origin_bytes)
	drop_caches
	"$reader" "$mnt" --threads 8 --sums "$work/sums" >/dev/null ||
		fail 'wrong bytes'
	expect 'origin bytes' $(($(status_field origin_bytes) - before)) "$1"
}

# whole: wait until everything is cached, because the last items are still being
# published.
whole() {
	[ "$(status_field resident_bytes)" -eq "$bytes" ]
}

within_budgets() {
	"$refrain" status "$mnt" --json | python3 -c '
import json, sys
for t in json.load(sys.stdin)["tiers"]:
    if t["used_bytes"] + t["reserved_bytes"] > t["capacity_bytes"]:
        sys.exit(1)' || fail 'over budget'
}

make_tree "$src" 7 150 1000000
"$reader" "$src" --make-sums "$work/sums" >/dev/null
bytes=$(tree_bytes "$src")

# filled: make a mount that caches everything, and end it.
filled() {
	start
	epoch "$bytes"
	wait_for 20 whole || fail 'not everything was admitted'
	stop_mount
}

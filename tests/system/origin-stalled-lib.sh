# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of hits beside an origin that hangs (M26); sourced after lib.sh. The
# 99th percentile of 1000 reads depends on the other programs on the machine,
# which make it longer, never shorter. So the best round of each kind counts. A
# hit that had waited for the origin would take seconds in every round. A p99 of
# hits up to STALLED_FLOOR_US passes. With 0, for a machine that does nothing
# else, only the factor of 2 counts.
held=64
rounds=4
floor_us=${STALLED_FLOOR_US:-$((250000 * patience))}

# files DIR COUNT BYTES
files() {
	mkdir -p "$src/$1"
	head -c $(($2 * $3)) /dev/urandom |
		(cd "$src/$1" && split -a 3 -b "$3" - f)
}

# p99: print the p99 of hits in microseconds. The kernel has none of their
# pages.
p99() {
	"$helpers/hit_times" "$mnt" 1000 <"$work/hits" >"$work/times" ||
		fail 'hits fail'
	cut -d' ' -f2 "$work/times"
}

best() {
	sort -n "$1" | head -n 1
}

# compare WHAT: compare the best values of the two lists of p99.
compare() {
	free_us=$(best "$work/free")
	beside_us=$(best "$work/beside")
	note "p99 of hits beside $1: $beside_us us, without: $free_us us;" \
		"all: $(tr '\n' ' ' <"$work/beside")and $(tr '\n' ' ' \
			<"$work/free")"
	[ "$beside_us" -le $((2 * free_us)) ] ||
		[ "$beside_us" -le "$floor_us" ] ||
		fail "hits wait for $1: $beside_us us, not $free_us us"
	rm "$work/free" "$work/beside"
}

files hit 200 110000
(cd "$src" && find hit -type f) >"$work/hits"

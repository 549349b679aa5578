# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of mounts that are killed; sourced after lib.sh. Makes a source and
# directories for two tiers, $fast and $slow, which have less room than the
# source needs. $sums has the sums of the files.

# Files with one item and with several, and one file that is read in pieces. The
# tiers have too little room for them, and there is too little memory to join
# the pieces.
make_tree "$src" 7 160 400000
sums=$work/sums
(cd "$src" && find . -type f -size +0) >"$work/files"
head -c 3000000 /dev/urandom >"$src/shard"
"$reader" "$src" --make-sums "$sums" >/dev/null
# $fast is in memory if this user may mount a tmpfs, otherwise on the disk like
# $slow.
fast=$work/fast
mkdir "$fast"
mount -t tmpfs -o mode=700 tmpfs "$fast" 2>/dev/null || :
slow=$work/slow
bytes=$(tree_bytes "$src")
fast_size=$((bytes / 5))
slow_size=$((bytes / 2))

# mount_it OPTION ...: start the daemon of a round, without waiting for it.
# shellcheck disable=SC2120 # some tests have options
mount_it() {
	daemons=$((daemons + 1))
	daemon_err=$work/daemon.$daemons.err
	rm -f "$work/daemon.$((daemons - 6)).err"
	"$refrain" mount --foreground "$src" "$mnt" --limit 128K --chunk 64K \
		--staging 512K --cache "$fast:$fast_size" \
		--cache "$slow:$slow_size" "$@" 2>"$daemon_err" &
	daemon=$!
}

# is_mounted: is the new mount there? The dead one, whose names the kernel may
# still have, does not count.
is_mounted() {
	daemon_gone || "$refrain" status "$mnt" --json >/dev/null 2>&1
}

# -- What must hold afterwards ------------------------------------------------

# tier_number N FIELD: print a number of the Nth tier.
tier_number() {
	sed 's/.*"tiers":\[//; s/\].*//; s/},{/}\n{/g' "$work/status" |
		sed -n "$1s/.*\"$2\":\\([0-9]*\\).*/\\1/p"
}

# charges: compute the charge of the entries of a tier from their files.
charges() {
	find "$1" -mindepth 2 -type f -printf '%s\n' |
		awk -v block="$(stat -f -c %S "$1")" '
			{ n += int(($1 + block - 1) / block) * block }
			END { printf("%d\n", n) }'
}

strangers() {
	entry='([0-9a-f]{2})/\2[0-9a-f]{30}-[1-9][0-9]*'
	(cd "$1" && find . ! -type d) |
		grep -vE "^\./(refrain-tier|refrain-lock|manifest|$entry)\$"
}

no_strangers() {
	! strangers "$1"
}

tier_right() {
	used=$(tier_number "$1" used_bytes)
	expect "used bytes of $2" "$used" "$(charges "$2")"
	[ "$used" -le "$3" ] || fail "$2 is over its budget: $used of $3"
	no_strangers "$2" >"$work/strangers" ||
		fail "strangers in $2: $(cat "$work/strangers")"
	"$refrain" verify "$2" >"$work/verify" 2>&1 ||
		fail "verify: $(cat "$work/verify")"
}

all_right() {
	wait_for 20 has_status ready true || fail 'never ready'
	scan_through
	"$refrain" status "$mnt" --json >"$work/status"
	tier_right 1 "$fast" "$fast_size"
	tier_right 2 "$slow" "$slow_size"
}

read_right() {
	"$reader" "$mnt" --threads 3 --sums "$sums" >"$work/read" 2>&1 ||
		fail "wrong after the kill: $(cat "$work/read")"
}

# all_cached: check that a mount with room for everything has exactly the files
# of the source in its tiers, whatever was killed before.
all_cached() {
	fast_size=$((bytes * 2))
	slow_size=$((bytes * 2))
	mount_it
	wait_for 20 is_mounted || fail 'no mount'
	scan_through
	"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
	"$refrain" warm "$mnt" >/dev/null || fail 'cannot warm'
	read_right
	all_right
	expect 'bytes that are cached' "$(status_field resident_bytes)" \
		"$(tree_bytes "$src")"
	stop_mount
}

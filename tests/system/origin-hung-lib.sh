# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of a source that does not answer; sourced after lib.sh. Makes a
# source of 60 files in 60 directories. The path of the tier, $cache, is not
# UTF-8.
requires fuse

# There are several times as many directories as a walk lists at a time.
for d in $(seq 60); do
	mkdir -p "$src/top$((d % 3))/d$d"
	echo "$d" >"$src/top$((d % 3))/d$d/f"
done
cache=$work/$(printf 'caf\351')

# warm_tier: mount, and cache everything in the tier, with the list of names.
warm_tier() {
	start_mount "$src" "$mnt" --cache "$cache:20M"
	scan_through
	"$refrain" warm "$mnt" >/dev/null || fail 'cannot warm'
}

# hanging_source: $work/far shows $src, and its process is $far. While that is
# stopped, every access to $work/far hangs in the kernel.
hanging_source() {
	mkdir "$work/far"
	"$helpers/failing_fs" "$src" "$work/far" "$work/switch" \
		2>"$work/far.err" &
	far=$!
	daemon=$far # the process ends with the test
	wait_for 10 test -d "$work/far/top1" || skip "$(cat "$work/far.err")"
	trap 'status=$?; set +e; kill -9 $far 2>/dev/null; (exit $status)
		cleanup' EXIT
}

# hanging_source_ends: unmount the source, and wait for its process.
hanging_source_ends() {
	fusermount3 -u "$work/far" || umount "$work/far"
	wait "$far" || :
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Shards: one large tar on a throttled disk. Ranges of 128 KB of it are read at
# random, and then all of it from end to end. Measures the bytes from the origin
# for each requested byte; the rate compared with dd of the bare file under the
# same throttle; and the cost of a remount for cached chunks.
#
#   BYTES=4000000000 bench/ranges.sh
#
# Prints a table, writes bench-ranges.json. Root or sudo, loop devices.
set -u
name=ranges
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

bytes=${BYTES:-1000000000} rate=100000000 pairs=3
count=256 length=131072
ranges=$PWD/bench/range-reader

slow_root || bench_skip "$slow_why"

status_of() {
	"$refrain" status "$mnt" --json | sed 's/"tiers":[^]]*]//' |
		number "$1"
}

# mount_it CACHE: mount, with the kernel's caches empty.
mount_it() {
	slow_disk_run "$refrain" mount "$slow_dir" "$mnt" \
		--cache "$work/cache.$1:$room" || bench_fail "the mount failed"
	forget
}

umount_it() {
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
}

row() {
	printf '%-58s %9s  %s\n' "$1" "$2" "$3"
}

# asked ALIGN: print origin bytes for each byte of random reads, with an empty
# cache.
asked() {
	mount_it "random.$1"
	"$ranges" "$mnt/shard.tar" $count $length "$1" >"$work/ranges" ||
		bench_fail "reading ranges failed"
	got=$(status_of origin_bytes)
	umount_it
	ratio "$got" $((count * length))
}

bare_rate() {
	forget
	slow_disk_run dd if="$slow_dir/shard.tar" of=/dev/null bs=1M \
		2>"$work/dd" || bench_fail "dd: $(cat "$work/dd")"
	dd_rate
}

# Print the MB/s that dd reported last.
dd_rate() {
	LC_ALL=C awk '/copied/ { for (i = 1; i < NF; i++)
		if ($(i + 1) == "s,") printf("%.2f\n", $1 / $i / 1e6) }' \
		"$work/dd"
}

mount_rate() {
	rm -rf "$work/cache.sequence"
	mount_it sequence
	dd if="$mnt/shard.tar" of=/dev/null bs=1M 2>"$work/dd" ||
		bench_fail "dd: $(cat "$work/dd")"
	dd_rate
	umount_it
}

LC_ALL=C
export LC_ALL
echo "ranges: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
mkdir "$mnt" "$work/data" "$work/members"
# Members of 1 MB: loaders read some hundred KB of a shard at a time.
head -c "$bytes" /dev/urandom |
	(cd "$work/members" && split -a 5 -b 1000000)
tar -C "$work/members" -cf "$work/data/shard.tar" . ||
	bench_fail "no tar was made"
rm -rf "$work/members"
slow_disk_make "$work" "$work/data" $rate || bench_skip "$slow_why"
rm -rf "$work/data"
size=$(stat -c %s "$slow_dir/shard.tar")
room=$((size * 11 / 10))

aligned=$(asked 4096) || exit 1
unaligned=$(asked 1) || exit 1
row "random reads of 128 KB: origin bytes a byte asked" "$aligned" "(bar 1.1)"
row "  at any offset" "$unaligned" "(bar 1.1)"

pair=1
while [ $pair -le $pairs ]; do
	bare=$(bare_rate) || exit 1
	ours=$(mount_rate) || exit 1
	r=$(ratio "$ours" "$bare")
	echo "$r" >>"$work/ratios"
	row "from end to end, MB/s: dd of the bare file $bare" "$ours" "$r"
	pair=$((pair + 1))
done
all=$(median <"$work/ratios")
row "  median ratio" "$all" "(bar 0.95)"

# The cache of the last round has all of the file.
mount_it sequence
"$ranges" "$mnt/shard.tar" $count $length 1 >"$work/ranges" ||
	bench_fail "reading ranges failed"
again=$(status_of origin_bytes)
entries=$(status_of entries)
umount_it
row "after a remount, origin bytes for ranges of it" "$again" \
	"(bar 0; $entries chunks)"
cat >"$json_out" <<END
{"bench": "ranges", "machine": "$(machine)", "bytes": $size,
 "rate_bytes_per_s": $rate, "random_ratio": $aligned,
 "random_ratio_unaligned": $unaligned, "sequential_ratio": $all,
 "remounted_origin_bytes": $again}
END

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Scale: a dataset of 1.3 million files (of the synthetic origin, so that only
# the mount is measured), and a tier of very many entries.
#
#   FILES=1300000 ENTRIES=1000000 bench/scale.sh
#
# Measures the memory of the daemon for a file, after the scan and a walk that
# stats all files, without that of an empty mount; the time to mount with a kept
# manifest; entries a second of the first `find -size +1` after that, and the
# requests of all this to the origin; the same walk over as many empty files in
# directories of 1,000 on the file system of TMPDIR, with its blocks in memory
# but no inode; how soon a tier serves hits, and admits, after a restart. The
# processor time of the daemon is printed, too, because it is more reliable than
# wall time on a busy machine. Prints a table, writes bench-scale.json.
set -u
name=scale
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

files=${FILES:-1300000} entries=${ENTRIES:-1000000}
source=synthetic:files=$files,size=110000

now() {
	date +%s.%N
}

since() {
	awk -v a="$1" -v b="$(now)" 'BEGIN { printf("%.3f\n", b - a) }'
}

# Print the processor time of the daemon in seconds.
cpu_s() {
	awk -v hz="$(getconf CLK_TCK)" '{
		sub(/.*[)] /, "") # the name may contain spaces
		printf("%.2f\n", ($12 + $13) / hz)
	}' "/proc/$(status_of pid)/stat"
}

status_of() {
	"$refrain" status "$mnt" --json | sed 's/"tiers":[^]]*]//' |
		number "$1"
}

mount_it() {
	"$refrain" mount "$1" "$mnt" --cache "$work/cache.$2:1G" ||
		bench_fail "the mount failed"
}

umount_it() {
	"$refrain" umount "$mnt" || bench_fail "the mount did not go away"
}

scan_through() {
	tries=1200
	until "$refrain" status "$mnt" --json | grep -q '"scan":"complete"'; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || bench_fail "the scan does not end"
		sleep 0.1
	done
}

# bare_walk: print the seconds of a walk without a mount. Needs root.
bare_walk() {
	slow_root || return 1
	i=0
	while [ $i -lt "$files" ]; do
		mkdir -p "$work/tree/$i" && cd "$work/tree/$i" || return 1
		seq $i $((i + 999 < files ? i + 999 : files - 1)) | xargs touch
		i=$((i + 1000))
	done
	sync
	slow_put 2 /proc/sys/vm/drop_caches || return 1
	start=$(now)
	found=$(find "$work/tree" -type f -size -1 | wc -l)
	[ "$found" -eq "$files" ] || bench_fail "$found bare files, not $files"
	since "$start"
}

walk() {
	found=$(find "$mnt" -type f -size +1 | wc -l)
	[ "$found" -eq "$files" ] || bench_fail "$found files, not $files"
}

row() {
	printf '%-52s %12s  %s\n' "$1" "$2" "$3"
}

per() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf("%.0f\n", a / b) }'
}

echo "scale: $(machine), load $(cut -d ' ' -f 1 /proc/loadavg)"
mkdir "$mnt" "$work/empty"
mount_it "$work/empty" empty
scan_through
empty=$(status_of memory_rss_bytes)
umount_it

mount_it "$source" full
start=$(now)
scan_through
scan_s=$(since "$start")
walk
rss=$(status_of memory_rss_bytes)
umount_it
manifest=$(stat -c %s "$work/cache.full/manifest")

forget # drop the manifest from the kernel's caches, too
start=$(now)
mount_it "$source" full
mount_s=$(since "$start") mount_cpu_s=$(cpu_s)
start=$(now)
walk
walk_s=$(since "$start") walk_cpu_s=$(cpu_s)
again=$(status_of memory_rss_bytes)
lists=$(status_of origin_lists) stats=$(status_of origin_stats)
reads=$(status_of origin_reads)
start=$(now)
walk
hot_s=$(since "$start")
umount_it

"$PWD/bench/bench-store" "$work/tier" "$entries" >"$work/store" ||
	bench_fail "$(cat "$work/store")"
# starts HOW FIELD: print the median of the starts of a kind, if there were any.
starts() {
	grep -q "^$1: " "$work/store" || return 0
	sed -n "s/^$1: //p" "$work/store" | sed "s/.*$2 \([0-9.]*\) ms.*/\1/" |
		median
}

# Deleted at the end, because ext4 is slow to create files after many deletions.
bare_s=$(bare_walk) || bare_s=

hit=$(starts reopened 'first hit after')
ready=$(starts reopened 'admission after')
start_cpu=$(starts reopened 'processor time')
cold_hit=$(starts 'reopened cold' 'first hit after')
cold_ready=$(starts 'reopened cold' 'admission after')
cold_cpu=$(starts 'reopened cold' 'processor time')

file_bytes=$(per $((rss - empty)) "$files")
again_bytes=$(per $((again - empty)) "$files")
walk_rate=$(per "$files" "$walk_s") hot_rate=$(per "$files" "$hot_s")
row "memory a file after scan and walk, bytes" "$file_bytes" "(bar 200)"
row "  after a mount from the manifest and a walk" "$again_bytes" "(bar 200)"
row "manifest on disk, bytes a file" "$(per "$manifest" "$files")" ""
row "scan of the source, s" "$scan_s" ""
row "mount from the manifest, s" "$mount_s" \
	"(bar 2; daemon's processor $mount_cpu_s)"
row "first find -size +1 after it, entries/s" "$walk_rate" \
	"(bar 200000; daemon's processor $walk_cpu_s s in all)"
row "  the second, entries/s" "$hot_rate" ""
[ -z "$bare_s" ] || bare_rate=$(per "$files" "$bare_s")
row "  the first, of a bare file system" "${bare_rate-not measured}" ""
row "  stats, lists, reads at the origin by then" "$stats, $lists, $reads" \
	"(1 stat is the mount's, of the source itself)"
row "first hit in a tier of $entries, ms" "$hit" ""
row "  its admission opens after, ms" "$ready" \
	"(bar 2000; processor $start_cpu ms)"
row "  first hit, with caches dropped, ms" "$cold_hit" ""
row "  its admission opens after, ms" "$cold_ready" \
	"(bar 2000; processor $cold_cpu ms)"
cat >"$json_out" <<END
{"bench": "scale", "machine": "$(machine)", "files": $files,
 "bytes_per_file": $file_bytes, "bytes_per_file_remounted": $again_bytes,
 "manifest_bytes": $manifest, "scan_s": $scan_s, "mount_s": $mount_s,
 "mount_cpu_s": $mount_cpu_s, "walk_per_s": $walk_rate,
 "walk_again_per_s": $hot_rate, "bare_walk_per_s": ${bare_rate:-null},
 "origin_stats": $stats,
 "origin_lists": $lists, "origin_reads": $reads, "entries": $entries,
 "first_hit_ms": $hit, "admission_ms": $ready,
 "admission_cpu_ms": $start_cpu, "cold_first_hit_ms": ${cold_hit:-null},
 "cold_admission_ms": ${cold_ready:-null},
 "cold_admission_cpu_ms": ${cold_cpu:-null}}
END

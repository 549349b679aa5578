#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Files that changed while nothing was mounted. If no byte of a version in the
# kept manifest was read, reads and warming use the new version. A reader that
# has bytes of the old version never gets bytes of the new one.
set -u
name=changed
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

cache=$work/cache
files=500

# write_files SEED: write files that have the same sizes for all seeds, but
# other bytes for each seed.
write_files() {
	python3 - "$src" "$1" $files <<'END' || fail 'cannot write the files'
import os, random, sys
rng = random.Random(int(sys.argv[2]))
for i in range(int(sys.argv[3])):
    with open('%s/f%03d' % (sys.argv[1], i), 'wb') as f:
        f.write(rng.randbytes(3000 + i))
END
}

mount_again() {
	start_mount "$src" "$mnt" --cache "$cache:20M" "$@"
	scan_through
}

# changed_unmounted SEED: change the files while nothing is mounted, so that the
# kept manifest is that of the old files.
changed_unmounted() {
	mount_again
	stop_mount
	write_files "$1"
}

write_files 1
changed_unmounted 2
mount_again
cat "$mnt"/* >"$work/read" 2>"$work/said" ||
	fail "$(wc -l <"$work/said") of $files reads failed"
cat "$src"/* | cmp - "$work/read" || fail 'wrong bytes'
expect 'files that followed' "$(status_field stale_reads)" $files
for f in f000 f250; do
	expect "mtime of $f" "$(stat -c %y "$mnt/$f")" "$(stat -c %y "$src/$f")"
done
stop_mount

# Cached files cause no requests to the source, even after a remount.
mount_again
cat "$mnt"/* | cmp - "$work/read" || fail 'wrong bytes after a remount'
expect 'reads of a warm epoch' "$(status_field origin_reads)" 0
[ "$(status_field origin_stats)" -le 1 ] || # one request, for the source itself
	fail "$(status_field origin_stats) look-ups in a warm epoch"
expect 'listings of a warm epoch' "$(status_field origin_lists)" 0
stop_mount

# Warm files, some of which have other sizes now.
rm -rf "$cache"
changed_unmounted 3
for i in 10 11 12; do
	echo "another size $i" >"$src/f0$i"
done
mount_again
"$refrain" warm "$mnt" --json >"$work/said" || fail "warm: $(cat "$work/said")"
grep -q "\"cached_items\":$files" "$work/said" || fail "$(cat "$work/said")"
grep -q '"already_items":0' "$work/said" || fail "$(cat "$work/said")"
reads=$(status_field origin_reads)
cat "$src"/* >"$work/want"
cat "$mnt"/* | cmp - "$work/want" || fail 'wrong bytes after warming'
expect 'reads after warming' "$(status_field origin_reads)" "$reads"
stop_mount

# A plan reports that it could not fetch the planned versions; the next plan can
# fetch the new ones.
rm -rf "$cache"
write_files 3
changed_unmounted 4
mount_again
names() {
	find "$src" -type f -printf '%P\n'
}
names | "$refrain" plan "$mnt" >"$work/said" 2>&1
expect 'the status of a plan of changed files' $? 1
grep -q "refrain: plan: $files items could not be fetched: $files files have" \
	"$work/said" || fail "plan: $(cat "$work/said")"
grep -q ' 0 items (0 B) were fetched ahead' "$work/said" ||
	fail "plan: $(cat "$work/said")"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
names | "$refrain" plan "$mnt" >"$work/said" 2>&1 ||
	fail "the second plan: $(cat "$work/said")"
stop_mount

# Sizes change: a reader that has seen the old size opens the file again.
rm -rf "$cache"
mount_again
stop_mount
echo 'another size' >"$src/f001"
mount_again
cat "$mnt/f001" >"$work/read" 2>"$work/said"
wait_for 20 cmp -s "$src/f001" "$mnt/f001" || fail 'no new version'
[ ! -s "$work/read" ] || cmp "$src/f001" "$work/read" || fail 'a mixture'
stop_mount

# Some chunks of the old version are cached and were read; the other chunks have
# changed.
rm -rf "$cache"
python3 - "$src" <<'END'
import sys
open(sys.argv[1] + '/big', 'wb').write(b'a' * (8 << 16))
END
mount_again --limit 64K --chunk 64K
head -c 65536 "$mnt/big" >/dev/null || fail 'cannot read a chunk'
stop_mount
python3 - "$src" <<'END'
import sys
open(sys.argv[1] + '/big', 'wb').write(b'b' * (8 << 16))
END
mount_again --limit 64K --chunk 64K
python3 - "$mnt/big" <<'END' || fail 'a mixture of two versions'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
got = os.pread(fd, 100, 0)
try:
    rest = os.pread(fd, 100, 7 << 16)
except OSError as e:
    assert e.errno == errno.ESTALE, e
    rest = b''
assert len(set(got + rest)) == 1, (got[:1], rest[:1])
assert os.open(sys.argv[1], os.O_RDONLY) and len(got) == 100
END
wait_for 20 cmp -s "$src/big" "$mnt/big" || fail 'no new version'
stop_mount

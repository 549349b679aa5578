#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Three mounts with one cache root, on a file system that is small in bytes and
# inodes, beside a program that fills it. The caches never exceed the size of
# the root, at any sample of 10 ms; daemons are killed anywhere; no reader gets
# an error, and none loses what it has cached. `refrain caches` lists the caches
# and drops those that nobody uses, but never one in use.
set -eu
name='cache-root'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/several-lib.sh
. "$(dirname "$0")/several-lib.sh"
requires root fuse python3

# Three sources of 30 MB, of which 60 MB fit.
disk=$work/disk
root=$disk/root
mkdir "$disk"
mount -t tmpfs -o size=120M,nr_inodes=6000 none "$disk"
for n in 1 2 3; do
	mkdir "$work/src$n" "$work/m$n"
	python3 - "$work/src$n" $n <<'END'
import os, random, sys
rng = random.Random(int(sys.argv[2]))
for i in range(300):
    with open('%s/f%03d' % (sys.argv[1], i), 'wb') as f:
        f.write(rng.randbytes(100000))
END
done

# serve N OPTION ...: mount source N; $work/pid.N is the daemon.
serve() {
	called=$1
	shift
	"$refrain" mount --foreground --no-hold "$work/src$called" \
		"$work/m$called" --cache-root "$root:60M" "$@" \
		2>>"$work/daemon.$called.err" &
	echo $! >"$work/pid.$called"
	wait_for 30 has_status_at "$work/m$called" ||
		fail "no mount of $called"
}

# end N: unmount mount N.
end() {
	"$refrain" umount "$work/m$1" || fail "cannot unmount $1"
	wait_for 30 has_ended "$(cat "$work/pid.$1")" || fail "$1 does not end"
}

# Sample the sums of entries, inodes and grants every 10 ms, until the file
# `stop` exists. The last line has the maximum of each.
cat >"$work/sample.py" <<'END'
import os, sys, time
root, stop = sys.argv[1:]
most = inodes = granted = samples = 0
while not os.path.exists(stop):
    n = size = 0
    for top in (os.scandir(root) if os.path.exists(root) else []):
        if not top.is_dir():
            continue
        n += 1
        for sub in os.scandir(top.path):
            n += 1
            if len(sub.name) != 2:
                continue
            for e in os.scandir(sub.path):
                n += 1
                try:
                    size += e.stat().st_blocks * 512
                except FileNotFoundError:
                    pass
    try:
        lines = open(root + '/refrain-grants').read().split('\n')
        g = [list(map(int, x.split()[1:])) for x in lines[1:] if x]
        granted = max(granted, sum(x[0] for x in g[1:]))
        assert sum(x[0] for x in g[1:]) <= g[0][0], g
        assert sum(x[1] for x in g[1:]) <= g[0][1], g
    except FileNotFoundError:
        pass
    most, inodes, samples = max(most, size), max(inodes, n), samples + 1
    assert size <= 60 << 20, size
    assert n <= 3000 + 10, n  # the root's share of the inodes
    time.sleep(0.01)
print(most, inodes, granted, samples)
END
python3 "$work/sample.py" "$root" "$work/stop" >"$work/samples" 2>&1 &
sampler=$!
ends_with_test $sampler

# A program beside the caches that uses disk space and frees it.
python3 - "$disk" "$work/stop" <<'END' &
import os, sys, time
disk, stop = sys.argv[1:]
while not os.path.exists(stop):
    try:
        with open(disk + '/filler', 'wb') as f:
            for i in range(100):
                f.write(bytes(1 << 20))
                time.sleep(0.002)
    except OSError:
        pass
    os.unlink(disk + '/filler')
    time.sleep(0.1)
END
filler=$!
ends_with_test $filler

reads_right() {
	for m; do
		diff -r "$work/src$m" "$work/m$m" ||
			fail "wrong bytes, or an error, in $m"
	done
}

note 'three mounts, a filler, and daemons that are killed'
serve 1 --keep-free 10%
serve 2
serve 3
reads_right 1 2 3
i=0
while [ $i -lt 6 ]; do
	n=$((i % 3 + 1))
	cat "$work/m$n"/* >"$work/null" 2>/dev/null &
	reader=$!
	[ $((i % 2)) -eq 0 ] || sleep 0.0$((i * 3))
	kill -9 "$(cat "$work/pid.$n")"
	wait $reader || :
	wait_for 20 has_ended "$(cat "$work/pid.$n")" || fail 'it does not die'
	umount -l "$work/m$n"
	serve $n
	reads_right $n
	i=$((i + 1))
done
rm "$work/null"
: >"$work/stop"
wait $filler || :
wait $sampler || fail "the caches exceed the root: $(cat "$work/samples")"
note "bytes, inodes, grants, samples: $(cat "$work/samples")"
reads_right 1 2 3
[ "$(awk '{ print $4 }' "$work/samples")" -gt 50 ] || fail 'too few samples'

note 'what is kept is hit, and no mount evicts'
for n in 1 2 3; do
	end $n
	serve $n
	"$refrain" warm "$work/m$n" >/dev/null 2>&1 || :
	expect "evictions of $n" "$(status_field evictions "$work/m$n")" 0
done
sum=0
for n in 1 2 3; do
	sum=$((sum + $(status_field cache_used_bytes "$work/m$n")))
done
[ $sum -le $((60 << 20)) ] || fail "$sum bytes are used"
[ $sum -ge $((40 << 20)) ] || fail "only $sum bytes are used"

note 'the caches, and those that nobody uses'
end 2
end 3
"$refrain" caches "$root" --json >"$work/caches" || fail 'no list'
python3 - "$work" "$work/src" <<'END' || fail "said: $(cat "$work/caches")"
import json, sys
c = json.load(open(sys.argv[1] + '/caches'))
assert c['size_bytes'] == 60 << 20 and c['granted_bytes'] <= 60 << 20, c
assert sorted(x['dataset'] for x in c['caches']) == [
    sys.argv[2] + n for n in '123'], c
assert [x['dataset'][-1] for x in c['caches'] if x['in_use']] == ['1'], c
assert all(x['used'] > 0 for x in c['caches']), c
END
"$refrain" caches "$root" | grep -q "in use  *[0-9a-f]* *$work/src1\$" ||
	fail 'it is not in use'
dir_of() {
	sed -n "s|.*\"dir\":\"\([^\"]*\)\",\"dataset\":\"$work/src$1\".*|\1|p" \
		"$work/one"
}
"$refrain" caches "$root" --json | tr '{' '\n' >"$work/one"
touch -d '-2 hours' "$root/$(dir_of 1)/refrain-lock" \
	"$root/$(dir_of 2)/refrain-lock"
"$refrain" caches "$root" --drop-unused 1h --dry-run >"$work/out" ||
	fail 'a dry run fails'
expect 'lines' "$(wc -l <"$work/out")" 1
[ -d "$root/$(dir_of 2)" ] || fail 'a dry run deletes'
"$refrain" caches "$root" --drop-unused 1h >"$work/out" || fail 'cannot drop'
expect 'lines' "$(wc -l <"$work/out")" 1
[ ! -e "$root/$(dir_of 2)" ] || fail 'it was not dropped'
[ -d "$root/$(dir_of 1)" ] || fail 'a cache in use was dropped'
[ -d "$root/$(dir_of 3)" ] || fail 'a new cache was dropped'
! ls "$root" | grep -q '^drop-' || fail 'something is left'
reads_right 1
# Bytes that were dropped can be used by others.
"$refrain" warm "$work/m1" >"$work/warm" 2>&1 || fail "$(cat "$work/warm")"
end 1

note 'sizes and directories that are refused'
refuses() {
	want=$1
	shift
	got=0
	"$refrain" "$@" >"$work/out" 2>"$work/err" || got=$?
	[ $got -ne 0 ] || fail "it succeeds: $*"
	grep -q -e "$want" "$work/err" || fail "said: $(cat "$work/err")"
}
refuses 'more than its new size' mount --no-hold "$work/src2" "$work/m2" \
	--cache-root "$root:1M"
refuses 'not larger than its file system' mount --no-hold "$work/src2" \
	"$work/m2" --cache-root "$root:1T"
refuses 'is not a cache root' caches "$work"
refuses 'is not a time' caches "$root" --drop-unused 1y
refuses '--dry-run needs' caches "$root" --dry-run
refuses 'required' mount "$work/src2" "$work/m2"
echo PASS

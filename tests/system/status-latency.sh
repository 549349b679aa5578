#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The histograms of the status agree with a trace that the reader makes of the
# same run, within one bucket, for an origin whose requests take a known time;
# each source of a read has its own.
set -eu
name='status-latency'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

files=60
i=0
while [ $i -lt $files ]; do
	head -c 30000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done

# Half of the files take 20 ms, the others 80 ms; each is read once, alone.
start_mount "$src" "$mnt" --cache "$work/cache:20M" --fault delay=20ms
scan_through
python3 - "$refrain" "$mnt" $files >"$work/trace" <<'END'
import os, subprocess, sys, time
refrain, mnt, files = sys.argv[1], sys.argv[2], int(sys.argv[3])
for i in range(files):
    if i == files // 2:
        subprocess.run([refrain, "fault", mnt, "delay=80ms"], check=True)
    begun = time.monotonic_ns()
    with open(f"{mnt}/f{i}", "rb", buffering=0) as f:
        opened = time.monotonic_ns()
        assert len(f.read(30000)) == 30000
    print((time.monotonic_ns() - opened) // 1000)
END
"$refrain" status "$mnt" --json >"$work/status.json"
python3 - "$work" $files <<'END' || fail 'the histograms differ'
import json, sys
s = json.load(open(sys.argv[1] + '/status.json'))
files = int(sys.argv[2])
latency = s['latency']
bounds = latency['bounds_us'] + [float('inf')]
assert bounds[:3] == [16, 32, 64] and len(bounds) == 25, bounds
trace = sorted(int(x) for x in open(sys.argv[1] + '/trace'))


def bucket(us):
    return next(i for i, b in enumerate(bounds) if us <= b)


def check(name, at_least_us):
    h = latency[name]
    assert sum(h['buckets']) == h['count'], h
    seen = [i for i, n in enumerate(h['buckets']) for _ in range(n)]
    assert len(seen) == files, (name, h)
    apart = [(a, bucket(b)) for a, b in zip(seen, trace)
             if abs(a - bucket(b)) > 1]
    # A few may differ, because the reader may have lost its processor.
    assert len(apart) <= files // 20, (name, apart, h, trace)
    assert seen[0] >= bucket(at_least_us), (name, h)
    assert seen[files // 2] >= bucket(80000), (name, h)
    assert h['sum_us'] >= files // 2 * 100000, (name, h)
    assert h['sum_us'] <= sum(trace) * 1.05, (name, h, sum(trace))


check('read_origin', 20000)
check('read_wait', 20000)
check('origin_read', 20000)
for name in 'read_tier', 'read_peer':
    assert latency[name]['count'] == 0, latency[name]
assert latency['origin_list']['count'] == s['origin_lists'] > 0
assert latency['origin_stat']['count'] == s['origin_stats']
END
"$refrain" status "$mnt" >"$work/screen"
grep -q '^  times  .*reads from the source: half within .* ms, 99 % within ' \
	"$work/screen" || fail "no times: $(cat "$work/screen")"
stop_mount

# Now the tier answers everything, and the origin nothing.
start_mount "$src" "$mnt" --cache "$work/cache:20M" --fault delay=500ms
scan_through
cat "$mnt"/* >/dev/null
"$refrain" status "$mnt" --json >"$work/status.json"
python3 - "$work" $files <<'END' || fail 'hits are not where they belong'
import json, sys
latency = json.load(open(sys.argv[1] + '/status.json'))['latency']
assert latency['read_tier']['count'] >= int(sys.argv[2]), latency
for name in 'read_origin', 'read_wait', 'origin_read', 'read_staging':
    assert latency[name]['count'] == 0, (name, latency[name])
END
stop_mount
echo PASS

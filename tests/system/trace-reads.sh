#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain trace` names process, path, range, source and duration of each READ,
# and agrees with the histograms of the same run within one bucket. A reader of
# the trace that is too slow loses READs, which are counted; readers of the
# mount do not wait for it; and a tracer that dies switches the trace off.
set -eu
name='trace-reads'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

files=40
mkdir "$src/some dir"
i=0
while [ $i -lt $files ]; do
	head -c 30000 /dev/urandom >"$src/some dir/f$i"
	i=$((i + 1))
done
head -c 16777216 /dev/urandom >"$src/large"
: >"$work/none"

# trace_start FILE OPTION ...: start a trace in the background; $tracer is its
# process. Returns when the daemon traces.
trace_start() {
	out=$1
	shift
	"$refrain" trace "$mnt" "$@" >"$out" 2>"$out.err" &
	tracer=$!
	ends_with_test $tracer
	wait_for 20 grep -q "^tracing" "$out.err" ||
		fail "no trace: $(cat "$out.err")"
}

# trace_stop: end the trace as Ctrl-C does.
trace_stop() {
	kill -INT $tracer
	wait $tracer || fail "the trace fails: $(cat "$out.err")"
}

# trace_has N: has the trace N READs?
trace_has() {
	[ "$(grep -c '"path"' "$out")" -ge "$1" ]
}

# read_all FILE: read the small files in one process, and write its number to
# FILE.
read_all() {
	python3 -c '
import os, sys
with open(sys.argv[1], "w") as f:
    f.write(str(os.getpid()))
for i in range(int(sys.argv[3])):
    with open("%s/some dir/f%d" % (sys.argv[2], i), "rb", 0) as f:
        assert len(f.read(30000)) == 30000
' "$1" "$mnt" $files || fail 'cannot read'
}

note 'each READ of a run, and the histograms of that run'
start_mount "$src" "$mnt" --cache "$work/cache:60M" --chunk 64K --limit 64K \
	--staging 16M --fault delay=20ms
scan_through
trace_start "$work/trace" --json
read_all "$work/reader"
wait_for 20 has_status entries $files || fail 'not all is cached'
drop_caches
read_all "$work/again"
wait_for 20 trace_has $((2 * files)) || fail "READs are missing: $(cat "$out")"
trace_stop
"$refrain" status "$mnt" --json >"$work/status.json"
python3 - "$work" $files <<'END' || fail 'the trace is wrong'
import json, sys
work, files = sys.argv[1], int(sys.argv[2])
latency = json.load(open(work + '/status.json'))['latency']
bounds = latency['bounds_us'] + [float('inf')]
reads = [json.loads(line) for line in open(work + '/trace')]
assert not [r for r in reads if 'lost' in r], reads
pids = [int(open(work + '/' + n).read()) for n in ('reader', 'again')]
for source, pid in ('origin', pids[0]), ('tier', pids[1]):
    mine = [r for r in reads if r['source'] == source]
    assert sorted(r['path'] for r in mine) == sorted(
        'some dir/f%d' % i for i in range(files)), mine
    for r in mine:
        assert r['pid'] == pid and r['program'].startswith('python3'), r
        # READs are of whole pages, up to the end of the file.
        assert (r['offset'], r['length']) == (0, 30000), r
    buckets = sorted(next(i for i, b in enumerate(bounds) if r['us'] <= b)
                     for r in mine)
    counted = [i for i, n in enumerate(latency['read_' + source]['buckets'])
               for _ in range(n)]
    assert len(counted) == files, (source, counted)
    assert all(abs(a - b) <= 1 for a, b in zip(buckets, counted)), (
        source, buckets, counted)
    whole = latency['read_' + source]['sum_us']
    assert abs(whole - sum(r['us'] for r in mine)) <= files, (whole, mine)
assert all(r['us'] >= 20000 for r in reads if r['source'] == 'origin')
times = [r['time'] for r in reads]
assert times == sorted(times), times
END

note 'processes that end right after their READ'
drop_caches
trace_start "$work/short" --json
i=0
while [ $i -lt 20 ]; do
	head -c 1 "$mnt/some dir/f$i" >"$work/none"
	i=$((i + 1))
done
wait_for 20 trace_has 20 || fail "READs are missing: $(cat "$out")"
trace_stop
expect 'READs without a name' "$(grep path "$work/short" |
	grep -vc '"program":"head"')" 0
expect 'processes' "$(sed -n 's/.*"pid":\([0-9]*\),.*/\1/p' "$work/short" |
	sort -u | wc -l)" 20

note 'only slow ones, only those of one process'
drop_caches
trace_start "$work/slow" --json --slow 15
read_all "$work/reader"
head -c 65536 "$mnt/large" >"$work/none"
wait_for 20 trace_has 1 || fail 'no slow READ'
trace_stop
! grep -q '"tier"' "$work/slow" || grep '"tier"' "$work/slow" |
	awk -F'"us":' '{ exit !($2 + 0 >= 15000) }' ||
	fail "READs that are not slow: $(cat "$work/slow")"
grep -q '"origin".*"path":"large"' "$work/slow" ||
	fail "no slow READ: $(cat "$work/slow")"
drop_caches
sleep 1000 &
other=$!
ends_with_test $other
trace_start "$work/other" --json --pid $other
read_all "$work/reader"
kill $other
trace_stop
! grep -q path "$work/other" || fail "another process: $(cat "$work/other")"

note 'where the time went'
drop_caches
trace_start "$work/summary" --summary --json
read_all "$work/reader"
trace_stop
python3 - "$work" $files <<'END' || fail "wrong: $(cat "$work/summary")"
import json, sys
work, files = sys.argv[1], int(sys.argv[2])
s = json.load(open(work + '/summary'))
assert s['reads'] == files and s['lost'] == 0, s
assert [d['directory'] for d in s['directories']] == ['some dir'], s
assert [d['source'] for d in s['sources']] == ['tier'], s
assert [p['pid'] for p in s['processes']] == [
    int(open(work + '/reader').read())], s
for kind in 'directories', 'sources', 'processes':
    assert s[kind][0]['us'] == s['us'] and sum(
        s[kind][0]['buckets']) == files, s
END
drop_caches
trace_start "$work/summary" --summary
read_all "$work/reader"
trace_stop
grep -q "^$files READs of .*; 0 more were lost" "$work/summary" ||
	fail "said: $(cat "$work/summary")"
grep -q '^100.0 % .*  some dir$' "$work/summary" ||
	fail "said: $(cat "$work/summary")"
drop_caches
trace_start "$work/lines"
read_all "$work/reader"
wait_for 20 grep -q 'some dir/f39$' "$work/lines" || fail 'READs are missing'
trace_stop
grep -q ' tier .* python3 .*  some dir/f7$' "$work/lines" ||
	fail "said: $(cat "$work/lines")"

# Each READ of 1 MiB has 16 items.
note 'a tracer that is too slow'
"$refrain" fault "$mnt" ''
"$refrain" warm "$mnt" large >"$work/none" 2>&1 || fail 'cannot warm'
trace_start "$work/stopped" --json
stop_process $tracer
cat >"$work/many.py" <<'END'
import mmap, os, sys, threading, time
until = time.monotonic() + float(sys.argv[2])
total = [0]


def run():
    fd = os.open(sys.argv[1] + '/large', os.O_RDONLY | os.O_DIRECT)
    buf = mmap.mmap(-1, 1 << 20)
    while time.monotonic() < until:
        for i in range(16):
            total[0] += os.preadv(fd, [buf], i << 20) == 1 << 20
    os.close(fd)


threads = [threading.Thread(target=run) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(total[0])
END
lost_some() {
	grep -q '^{"lost":[1-9]' "$work/stopped"
}
i=0
until lost_some; do
	i=$((i + 1))
	[ $i -lt 10 ] || fail 'nothing is lost'
	stop_process $tracer
	python3 "$work/many.py" "$mnt" 6 >"$work/none" ||
		fail 'readers are held up'
	kill -CONT $tracer
	wait_for 5 lost_some || :
done
trace_stop

note 'tracers that die, or that stay stopped'
trace_start "$work/killed" --json
kill -9 $tracer
wait $tracer 2>/dev/null || :
trace_start "$work/next" --summary --json
stop_process $tracer
gone=$tracer
# The daemon gives up a client that reads nothing for 10 s.
python3 "$work/many.py" "$mnt" 1 >"$work/none"
"$refrain" trace "$mnt" -n 1 >"$work/none" 2>"$work/err" &&
	fail 'two programs trace' || :
grep -q 'another program traces' "$work/err" || fail "said: $(cat "$work/err")"
wait_for 60 "$refrain" trace "$mnt" -n 1 --summary >"$work/none" 2>&1 ||
	fail 'a stopped tracer keeps the trace'
kill -CONT $gone
wait $gone 2>/dev/null && fail 'a trace that was cut off succeeds' || :
grep -q 'refrain: trace: ' "$work/next.err" || fail 'no reason is given'

note 'the daemon ends'
trace_start "$work/ends" --json
stop_mount
wait $tracer && fail 'a trace without a daemon succeeds' || :
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain status` of a warm mount on a screen, as JSON and for Prometheus: each
# counter has its name, a sentence and the same value.
set -eu
name=command-status
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

source_dir=${srcdir:-$(dirname "$0")/../..}
mounted "$work/cache:100M"
warm 0

"$refrain" status "$mnt" --json >"$work/status.json"
"$refrain" status "$mnt" --prometheus >"$work/status.prom"
"$refrain" status "$mnt" >"$work/status.txt"
[ "$(wc -l <"$work/status.txt")" -le 24 ] || fail 'more than a screen'
grep -q "$src" "$work/status.txt" || fail 'the screen lacks the source'
python3 - "$work" "$source_dir/src/common/base/counters.def" "$src" "$mnt" \
	"$all" "$files" <<'END' || fail 'the status is not as it should be'
import json, re, sys
work, table, src, mnt, total, files = sys.argv[1:]
s = json.load(open(work + '/status.json'))
fields = '''source mountpoint uptime_s files_known cache_capacity_bytes
    cache_used_bytes resident_bytes entries evictions invalidated hits misses
    hit_bytes miss_bytes origin_reads origin_bytes origin_retry_bytes
    origin_errors checksum_errors prefetch_issued prefetch_used
    prefetch_wasted inflight staging_bytes tiers'''.split()
counters = re.findall(r'^COUNTER\((\w+)', open(table).read(), re.M)
assert len(counters) > 20, counters
for f in fields + counters:
    assert f in s, f + ' is missing'
assert s['source'] == src and s['mountpoint'] == mnt, s
assert s['evictions'] == 0 and s['files_known'] == int(files), s
for t in s['tiers']:
    for f in ('dir', 'capacity_bytes', 'used_bytes', 'entries'):
        assert f in t, f + ' is missing of a tier'
assert s['cache_capacity_bytes'] == sum(
    t['capacity_bytes'] for t in s['tiers']) == 100 << 20, s
assert s['resident_bytes'] == int(total) <= s['cache_used_bytes'], s

head, samples, helped = {}, {}, set()
for line in open(work + '/status.prom'):
    line = line.rstrip('\n')
    if m := re.fullmatch(r'# HELP (\w+) (\S.*)', line):
        assert m[1] not in helped, line
        helped.add(m[1])
    elif m := re.fullmatch(r'# TYPE (\w+) (counter|gauge|histogram)', line):
        assert m[1] in helped and m[1] not in head, line
        head[m[1]] = m[2]
    else:
        label = r'\w+="(?:[^"\\\n]|\\["\\n])*"'
        m = re.fullmatch(
            r'(\w+)\{%s(?:,%s)*\} ([0-9.e+-]+)' % (label, label), line)
        assert m, line
        family = re.sub('_(bucket|sum|count)$', '', m[1])
        assert m[1] in head or head.get(family) == 'histogram', line
        samples[m[1] if m[1] in head else family] = float(m[2])
for c in counters:
    name = 'refrain_%s_total' % re.sub('_us$', '_seconds', c)
    assert head.get(name) == 'counter', c
    assert samples[name] == s[c] / (1e6 if c.endswith('_us') else 1), c
assert samples['refrain_resident_bytes'] == int(total)
assert samples['refrain_ready'] == samples['refrain_scan_complete'] == 1
assert samples['refrain_unlisted_directories'] == 0
assert samples['refrain_tier_used_bytes'] == s['cache_used_bytes']
assert not set(head) - set(samples), 'a metric without a sample'
END
stop_mount

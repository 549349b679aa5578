#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Commands for a mount: warm it (exactly, resumably, by path),
# refresh it, verify and clear its cache, and look at its status in all forms.
set -eu
name=warm
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum

source_dir=${srcdir:-$(dirname "$0")/../..}

# warmed FIELD: of the last warm --json.
warmed() {
	sed 's/[{,}]/\n/g' "$work/warmed" | sed -n "s/^\"$1\"://p"
}

# warm STATUS PATH ...
warm() {
	want=$1
	shift
	got=0
	"$refrain" warm "$mnt" --json "$@" >"$work/warmed" 2>"$work/err" ||
		got=$?
	expect "warm $*: $(cat "$work/err")" $got "$want"
}

# items DIR ...: of these, at --limit 128K and --chunk 64K.
items() {
	find "$@" -type f -size +0 -printf '%s\n' |
		awk '{ n += $1 <= 131072 ? 1 : int(($1 + 65535) / 65536) }
			END { print n + 0 }'
}

# ends STATUS TEXT WORD ...: refrain with these; TEXT is in what it prints.
ends() {
	want=$1
	text=$2
	shift 2
	got=0
	"$refrain" "$@" >"$work/out" 2>"$work/err" || got=$?
	expect "refrain $*: $(cat "$work/out" "$work/err")" $got "$want"
	grep -q -- "$text" "$work/out" "$work/err" ||
		fail "no '$text': $(cat "$work/out" "$work/err")"
	[ "$(wc -l <"$work/err")" -eq $((got > 0 && want < 3)) ] ||
		[ ! -s "$work/err" ] || fail "$(cat "$work/err")"
}

mounted() {
	start_mount "$src" "$mnt" --cache "$1" --limit 128K --chunk 64K \
		--staging 32M --fault ''
}

files=500
make_tree "$src" 61 $files 300000
all=$(tree_bytes "$src")
all_items=$(items "$src")

# -- Exactly -----------------------------------------------------------------

mounted "$work/cache:100M"
warm 0
expect 'items cached' "$(warmed cached_items)" "$all_items"
expect 'bytes cached' "$(warmed cached_bytes)" "$all"
expect 'items before' "$(warmed already_items)" 0
expect 'items without room' "$(warmed not_fitting_items)" 0
expect 'files' "$(warmed files)" $files
expect 'resident bytes' "$(status_field resident_bytes)" "$all"
expect 'entries' "$(status_field entries)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
warm 0
expect 'items before' "$(warmed already_items)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
sums_right "$src.sums" "$mnt"
expect 'misses of what was warmed' "$(status_field misses)" 0
ends 0 "$all_items items (.*) are cached, $all_items of them were" warm "$mnt"
ends 1 "cannot warm 'nowhere': the source has no such name" warm "$mnt" nowhere
ends 1 "cannot warm 'd1/nowhere': the source has no such name" \
	warm "$mnt" d1/nowhere
ends 1 . warm "$mnt" ../src
ends 1 . warm "$mnt" d1/../../src

# -- Status ------------------------------------------------------------------

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
    elif m := re.fullmatch(r'# TYPE (\w+) (counter|gauge)', line):
        assert m[1] in helped and m[1] not in head, line
        head[m[1]] = m[2]
    else:
        label = r'\w+="(?:[^"\\\n]|\\["\\n])*"'
        m = re.fullmatch(
            r'(\w+)\{%s(?:,%s)*\} ([0-9.e+-]+)' % (label, label), line)
        assert m and m[1] in head, line
        samples[m[1]] = float(m[2])
for c in counters:
    assert head.get('refrain_%s_total' % c) == 'counter', c
    assert samples['refrain_%s_total' % c] == s[c], c
assert samples['refrain_resident_bytes'] == int(total)
assert samples['refrain_ready'] == samples['refrain_scan_complete'] == 1
assert samples['refrain_unlisted_directories'] == 0
assert samples['refrain_tier_used_bytes'] == s['cache_used_bytes']
assert not set(head) - set(samples), 'a metric without a sample'
END

# -- Verify and clear --------------------------------------------------------

ends 0 "^$all_items entries .* checked, 0 bad" verify "$mnt"
ends 0 "^$all_items entries .* checked, 0 bad" verify "$work/cache"
ends 1 'in use by another mount' clear "$work/cache"
expect 'entries' "$(status_field entries)" "$all_items"
entry=$(find "$work/cache/"?? -type f -size +40k | sort | head -n 1)
# Another byte than the one there, whatever that is.
other=X
[ "$(dd if="$entry" bs=1 skip=20000 count=1 2>/dev/null | tr -d '\0')" != X ] ||
	other=Y
printf %s $other | dd of="$entry" bs=1 seek=20000 conv=notrunc 2>/dev/null
ends 1 "^.*${entry##*/}: " verify "$mnt"
grep -q "$all_items entries .* checked, 1 bad" "$work/out" || fail 'not 1 bad'
drop_caches
sums_right "$src.sums" "$mnt"
expect 'entries found bad' "$(status_field checksum_errors)" 1
ends 0 'checked, 0 bad' verify "$mnt"

# -- Refresh -----------------------------------------------------------------

echo longer than before >>"$src/d1/e1/f00001"
echo new >"$src/d1/added"
rm "$src/d2/e2/f00002"
[ ! -e "$mnt/d1/added" ] || fail 'seen before the refresh'
ends 0 ' 1 file changed, 1 added, 1 removed' refresh "$mnt"
cmp "$src/d1/e1/f00001" "$mnt/d1/e1/f00001" || fail 'the old version'
cmp "$src/d1/added" "$mnt/d1/added" || fail 'not the added file'
[ ! -e "$mnt/d2/e2/f00002" ] || fail 'the removed file is still there'
ends 0 ' 0 files changed, 0 added, 0 removed' refresh "$mnt" d1 d2
ends 1 "'nowhere'" refresh "$mnt" nowhere
make_deep "$src"
echo found >"$src/deep/found"
deep="1 directory could not be listed: 'deep/n.*File name too long"
ends 1 "refresh: $deep" refresh "$mnt"
warm 1
grep -q "warm: $deep" "$work/err" || fail "$(cat "$work/err")"
expect 'directories in the answer' "$(warmed unlisted)" 1
expect 'items of the rest' "$(warmed cached_items)" "$(items "$src")"
expect 'what was found' "$(cat "$mnt/deep/found")" found
stop_mount
rm -rf "$src/deep"
ends 0 ' entries removed' clear "$work/cache"
[ -z "$(ls -A "$work/cache")" ] || fail "left: $(ls -A "$work/cache")"
ends 1 'is not a cache' clear "$src"
sums=$work/now.sums
(cd "$src" && find . -type f -print0 | xargs -0 sha256sum) >"$sums"
all=$(tree_bytes "$src")
all_items=$(items "$src")

# -- By path, and on after an interrupt --------------------------------------

mounted "$work/cache:100M"
warm 0 d3 d4/e1 "$mnt/d5/e0/"
expect 'items of three paths' "$(warmed cached_items)" \
	"$(items "$src/d3" "$src/d4/e1" "$src/d5/e0")"
expect 'resident bytes' "$(status_field resident_bytes)" \
	$(($(tree_bytes "$src/d3") + $(tree_bytes "$src/d4/e1") +
		$(tree_bytes "$src/d5/e0")))
file=$(cd "$src" && find d6 -type f -size +200k | sort | head -n 1)
warm 0 "$file"
expect 'items of one file' "$(warmed cached_items)" "$(items "$src/$file")"

some_more() {
	n=$(status_field entries)
	[ "$n" -gt $((first + 10)) ]
}
first=$(status_field entries)
# Half of the requests hang: it cannot come to an end.
"$refrain" fault "$mnt" stall=0.5,seed=3
"$refrain" warm "$mnt" >"$work/out" 2>&1 &
warming=$!
wait_for 10 some_more || fail 'warming makes no progress'
kill -TERM $warming
wait $warming && fail 'an interrupted warming is no success'
# What is out comes back; slowly, for it looks for us five times a second.
"$refrain" fault "$mnt" rate=2M
wait_for 10 has_status inflight 0 || fail 'it goes on by itself'
"$refrain" fault "$mnt" ''
part=$(status_field entries)
[ "$part" -lt "$all_items" ] || fail 'it was not interrupted'
warm 0
[ "$(warmed already_items)" -ge "$part" ] || fail 'it begins anew'
expect 'items cached' "$(warmed cached_items)" "$all_items"
expect 'bytes from the origin' "$(status_field origin_bytes)" "$all"
note "interrupted at $part of $all_items items, none fetched twice"
drop_caches
sums_right "$sums" "$mnt"
expect misses "$(status_field misses)" 0
stop_mount

# -- What does not fit -------------------------------------------------------

half=$((all / 2))
mounted "$work/small:$half"
warm 0
cached=$(warmed cached_items)
rest=$(warmed not_fitting_items)
expect 'all items' $((cached + rest)) "$all_items"
[ "$rest" -gt 0 ] || fail 'all of it fits'
expect 'all bytes' \
	$(($(warmed cached_bytes) + $(warmed not_fitting_bytes))) "$all"
expect 'resident bytes' "$(status_field resident_bytes)" \
	"$(warmed cached_bytes)"
used=$(status_field cache_used_bytes)
[ "$used" -le $half ] || fail "$used used of $half"
[ "$used" -gt $((half - 140000)) ] || fail "only $used used of $half"
expect 'bytes fetched' "$(status_field origin_bytes)" "$(warmed cached_bytes)"
note "$(warmed cached_bytes) bytes charged $used fit $half"
warm 0
expect 'items cached' "$(warmed cached_items)" "$cached"
expect 'bytes fetched' "$(status_field origin_bytes)" "$(warmed cached_bytes)"
drop_caches
sums_right "$sums" "$mnt"
expect 'bytes of the rest' \
	$(($(status_field origin_bytes) - $(warmed cached_bytes))) \
	"$(warmed not_fitting_bytes)"
stop_mount

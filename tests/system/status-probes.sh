#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tools/refrain-trace.bt and refrain-trace-loader.bt under bpftrace, over a
# mount and two loaders: their counts equal the mount's counters and the
# loaders' statistics.
set -eu
name=trace
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount bpftrace python3
grep -qx '#define HAVE_PROBES 1' config.h || skip 'built without probes'
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
[ -e /sys/kernel/btf/vmlinux ] || skip 'the kernel has no BTF'
[ -e /sys/kernel/tracing/uprobe_events ] ||
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
	skip 'cannot mount tracefs'
[ -e /sys/kernel/tracing/uprobe_events ] || skip 'the kernel has no uprobes'

# Use a copy of the program, so that processes of other tests are not counted.
cp "$refrain" "$work/refrain"
refrain=$work/refrain
bpftrace -e "usdt:$refrain:refrain:hit { } interval:ms:1 { exit(); }" \
	>"$work/out" 2>&1 || {
	cat "$work/out"
	skip 'bpftrace cannot trace here'
}

tracer=
# trace_begin SCRIPT PROGRAM: start bpftrace. Returns when the probes are in
# place.
trace_begin() {
	rm -f "$work/trace" "$work/trace.err"
	bpftrace -f json "${srcdir:-.}/tools/$1" "$2" >"$work/trace" \
		2>"$work/trace.err" &
	tracer=$!
	ends_with_test $tracer
	wait_for 60 tracer_says || fail 'bpftrace does not begin'
	grep -q 'tracing' "$work/trace" ||
		fail "bpftrace refuses $1: $(cat "$work/trace.err")"
}

tracer_says() {
	grep -qs 'tracing' "$work/trace" || has_ended $tracer
}

# trace_end: end bpftrace; its maps are in $work/trace.
trace_end() {
	kill -INT $tracer
	wait_for 60 has_ended $tracer || fail 'bpftrace does not end'
}

# traced EXPRESSION: print a Python expression. m has the maps by name, and n()
# is the number of values in a histogram.
traced() {
	python3 -c "import json, sys
m = {}
for line in open(sys.argv[1]):
    line = json.loads(line if line.strip() else '{\"type\": \"\"}')
    if line['type'] in ('map', 'hist'):
        m.update(line['data'])
def n(name):
    return sum(x['count'] for x in m.get(name, []))
print($1)" "$work/trace"
}

# same MAP COUNTER: check that the mount's counter has grown by as much since
# `counters`.
same() {
	expect "$2" "$(traced "m.get('@$1', 0)")" \
		"$(($(status_field "$2") - $(cat "$work/was.$2")))"
}

counters() {
	for c in hits misses hit_bytes miss_bytes origin_reads origin_bytes \
		admitted; do
		status_field $c >"$work/was.$c"
	done
}

read_all() {
	find "$mnt" -type f ! -name late -exec cat {} + >"$work/out"
}

is_published() {
	[ "$(status_field admitted)" -ge "$1" ]
}

# -- A mount ------------------------------------------------------------------
# There are 12 small files, one file of five chunks, and one file that is not
# read at first.
mkdir "$src/small"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	head -c $((i * 9000)) /dev/urandom >"$src/small/$i"
done
head -c 1300000 /dev/urandom >"$src/big"
head -c 5000 /dev/urandom >"$src/late"
start_mount "$src" "$mnt" --cache "$work/cache:100M" --limit 1M --chunk 256K \
	--fault ''
scan_through

counters
trace_begin refrain-trace.bt "$refrain"
read_all
wait_for 20 is_published 17 || fail 'not all items are published'
drop_caches
read_all
trace_end
same hits hits
same misses misses
same hit_bytes hit_bytes
same miss_bytes miss_bytes
same origin_bytes origin_bytes
expect 'hits' "$(traced "m['@hits']")" 17
expect 'misses' "$(traced "m['@misses']")" 17
# An item may be published between two READs of it.
expect 'bytes' "$(traced "m['@hit_bytes'] + m['@miss_bytes']")" \
	$((2 * (1300000 + 78 * 9000)))
expect 'kinds of answers' "$(traced "list(m['@answers'])")" "['0']"
expect 'answers' "$(traced "m['@answers']['0']")" \
	$(($(status_field origin_reads) - $(cat "$work/was.origin_reads")))
expect 'publications' "$(traced "m['@publications']")" "{'0': 17}"
expect 'published sizes' "$(traced "n('@published_size_bytes')")" 17
expect 'latencies' "$(traced "n('@origin_us')")" \
	"$(traced "m['@answers']['0']")"
expect 'sizes' "$(traced "n('@hit_size_bytes') >= 17 and \
	n('@miss_size_bytes') >= 17")" True

# A request that fails, for a reader that gets an error.
"$refrain" fault "$mnt" error=1,match=late
trace_begin refrain-trace.bt "$refrain"
! cat "$mnt/late" >"$work/out" 2>&1 || fail 'a read succeeds'
trace_end
expect 'failed answers' "$(traced "sorted(m['@answers'])")" "['-5']"
expect 'no publication' "$(traced "m.get('@publications', {})")" '{}'
stop_mount

# -- Loaders ------------------------------------------------------------------
# 40 images in two epochs make 80 in batches of 16.
data=$work/data
"$refrain" make-dataset "$data" --classes 2 --images 40 --size 64x64 >/dev/null

trace_begin refrain-trace-loader.bt "$refrain"
"$refrain" load "$data" --batch 16 --epochs 2 --size 32 --seed 5 --json \
	>"$work/json"
trace_end
grep -q '"steps":5[,}]' "$work/json" || fail "not 5 steps: $(cat "$work/json")"
expect 'next' "$(traced "m['@nexts'] == {'1': 5, '0': 1}")" True
expect 'calls of next' "$(traced "n('@next_us')")" 6
expect 'release' "$(traced "m['@releases']")" 5
expect 'times that batches were held' "$(traced "n('@held_us')")" 5

# The probes in the library: the example serves each image twice, in batches of
# 64.
cp -L .libs/librefrain.so.0 "$work/librefrain.so.0"
cc=$(sed -n 's/^CC = //p' Makefile)
sanitize=$(sed -n 's/^SANITIZE_CFLAGS = //p' Makefile)
# shellcheck disable=SC2086 # lists of words
$cc $sanitize "${srcdir:-.}/examples/minimal.c" -I"${srcdir:-.}/include" \
	-o "$work/minimal" "$work/librefrain.so.0" ||
	fail 'cannot build a program'
trace_begin refrain-trace-loader.bt "$work/librefrain.so.0"
LD_LIBRARY_PATH=$work "$work/minimal" "$data" >"$work/out"
trace_end
grep -q '^2 steps' "$work/out" || fail "not 2 steps: $(cat "$work/out")"
expect 'next' "$(traced "m['@nexts'] == {'1': 2, '0': 1}")" True
expect 'release' "$(traced "m['@releases']")" 2

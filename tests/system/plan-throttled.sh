#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plans on a throttled source: an epoch that is planned costs what an epoch
# costs, wastes nothing, and takes no longer than the source or the trainer;
# several ranks and a stranger at once; clients that die; wrong orders; an
# order of many lines; the helper for Python.
set -eu
name=plan
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "${srcdir:-$here/../..}/tools" && pwd)
size=50000
files=400
lines=${REFRAIN_PLAN_LINES:-200000}

mkdir "$src/d"
head -c $((size * files)) /dev/urandom | split -b $size -a 3 - "$src/d/f"
(cd "$src" && find d -type f) | sort >"$work/names"

# order SEED: all files, in an order of its own.
order() {
	awk -v s="$1" 'BEGIN { srand(s) } { print rand(), $0 }' \
		"$work/names" | sort -n | cut -d ' ' -f 2
}

# train ORDER OPTION ...: an epoch; its seconds are in $seconds.
train() {
	python3 "$here/trainer.py" "$mnt" "$@" >"$work/trained" ||
		fail "the trainer: $(cat "$work/trained")"
	seconds=$(sed 's/.*"seconds": \([0-9.]*\).*/\1/' "$work/trained")
}

planned() {
	sed 's/[{,}]/\n/g' "$work/planned" | sed -n "s/^\"$1\"://p"
}

# begin ORDER OPTION ...: a plan in the background, as $planning.
begin() {
	list=$1
	shift
	"$refrain" plan "$mnt" --json "$@" <"$list" >"$work/planned" \
		2>"$work/planned.err" &
	planning=$!
	wait_for 20 has_status plans 1 || fail "$(cat "$work/planned.err")"
}

# The plan ends by itself, for all was read.
ended() {
	wait_for 20 has_ended $planning || fail 'the plan does not end'
	wait $planning || fail "the plan failed: $(cat "$work/planned.err")"
	wait_for 10 has_status plans 0 || fail 'a plan is left'
	wait_for 10 has_status planned_bytes 0 ||
		fail 'memory of a plan is left'
}

# counted COUNTER: since `count`.
count() {
	for c in origin_bytes prefetch_wasted staging_dropped \
		prefetch_carried_bytes reread_bytes; do
		eval "had_$c=$(status_field $c)"
	done
}

counted() {
	eval "echo \$(($(status_field "$1") - had_$1))"
}

# -- Exactly -----------------------------------------------------------------

# Half of it fits.
start_mount "$src" "$mnt" --cache "$work/cache:10M" --limit 256K --chunk 64K \
	--staging 2M --fault ''
scan_through
for epoch in 1 2 3; do
	order $epoch >"$work/order"
	rest=$((size * files - $(status_field resident_bytes)))
	count
	"$refrain" fault "$mnt" rate=8M
	begin "$work/order" --epoch $epoch --batch 16
	train "$work/order" --step-ms 20 --threads 4
	ended
	expect "bytes of epoch $epoch" "$(counted origin_bytes)" $rest
	expect 'items wasted' "$(counted prefetch_wasted)" 0
	expect 'items dropped' "$(counted staging_dropped)" 0
	expect 'positions' "$(planned positions)" $files
	expect 'positions done' "$(planned "done")" $files
	expect 'wasted of the plan' "$(planned wasted_items)" 0
	note "epoch $epoch: $rest bytes in $seconds s"
done
expect 'items used' "$(status_field prefetch_used)" \
	"$(status_field prefetch_issued)"
peak=$(status_field staging_peak_bytes)
[ "$peak" -le $((2 << 20)) ] || fail "staging came to $peak"
[ "$(status_field prefetch_issued)" -gt $((files / 4)) ] ||
	fail 'hardly anything was fetched ahead'

# -- Two epochs on one input ---------------------------------------------------

# An empty line ends an epoch, and without one a name that comes twice is left
# out.
order 11 >"$work/order"
order 12 >"$work/next"
{
	cat "$work/order"
	echo
	cat "$work/next"
} >"$work/both"
rest=$((size * files - $(status_field resident_bytes)))
count
begin "$work/both" --batch 16
train "$work/order"
train "$work/next"
ended
expect 'positions of two epochs' "$(planned positions)" $((2 * files))
expect 'names that come twice' "$(planned duplicate)" 0
expect 'items wasted in two epochs' "$(counted prefetch_wasted)" 0
expect 'bytes of two epochs, or carried' \
	"$(($(counted origin_bytes) - $(counted reread_bytes) +
	$(counted prefetch_carried_bytes)))" $((2 * rest))
cat "$work/order" "$work/next" >"$work/both"
begin "$work/both"
train "$work/order"
ended
expect 'positions without an empty line' "$(planned positions)" $files
expect 'names that come twice' "$(planned duplicate)" $files

# -- Two ranks and a stranger ------------------------------------------------

order 4 >"$work/order"
awk 'NR % 2' "$work/order" >"$work/rank.0"
awk 'NR % 2 == 0' "$work/order" >"$work/rank.1"
order 5 >"$work/strange"
rest=$((size * files - $(status_field resident_bytes)))
count
dropped=$(drops)
"$refrain" plan "$mnt" --batch 8 <"$work/rank.0" >"$work/out.0" &
one=$!
"$refrain" plan "$mnt" --batch 8 --step-ms 20 <"$work/rank.1" >"$work/out.1" &
two=$!
wait_for 10 has_status plans 2 || fail 'no two plans'
# The stranger keeps what it reads in the kernel's cache, as programs do.
sed "s|^|$mnt/|" "$work/strange" | xargs cat >/dev/null &
stranger=$!
(cd "$mnt" && xargs cat) <"$work/rank.0" | wc -c >"$work/read.0" &
third=$!
(cd "$mnt" && xargs cat) <"$work/rank.1" | wc -c >"$work/read.1"
wait $third
wait $stranger
expect 'bytes of both ranks' \
	$(($(cat "$work/read.0") + $(cat "$work/read.1"))) $((size * files))
kill $one $two 2>/dev/null || :
wait $one || :
wait $two || :
wait_for 10 has_status plans 0 || fail 'a plan is left'
wait_for 10 has_status planned_bytes 0 || fail 'memory of a plan is left'
expect 'items dropped' "$(counted staging_dropped)" 0
if [ "$(drops)" -ne "$dropped" ]; then
	note 'somebody dropped the kernel caches: the bytes are not looked at'
else
	# Now and then the kernel asks for a page of a file once more, when
	# several read it at the same time; so it does without plans.
	more=$(($(counted origin_bytes) - rest))
	note "three readers at once: $rest bytes and $more more," \
		"$(counted prefetch_wasted) items wasted"
	few=$((files / 20)) wasted=$(counted prefetch_wasted)
	if [ $more -gt $((size * (few + wasted))) ] || [ "$wasted" -gt $few ]
	then
		fail 'items are fetched more than once'
	fi
fi

# -- Clients that die, orders that are wrong ---------------------------------

python3 - "$mnt" <<'END' || fail 'a client in mid-line'
import json, os, socket, sys
path = os.getxattr(sys.argv[1], 'user.refrain.control').decode()
s = socket.socket(socket.AF_UNIX)
s.connect(path)
f = s.makefile('rwb')
def ask(line):
    f.write(line)
    f.flush()
    return json.loads(f.readline())
assert not ask(b'{"cmd":"plan-add","paths":[]}\n')['ok']
assert not ask(b'{"cmd":"plan","echo":"0.5"}\n')['ok']
assert not ask(b'{"cmd":"plan","batch":-1}\n')['ok']
assert not ask(b'{"cmd":"plan","batch":8,"echo":4,"window":9}\n')['ok']
assert ask(b'{"cmd":"plan","batch":8,"echo":4}\n')['ok']
names = ['d/' + n for n in sorted(os.listdir(sys.argv[1] + '/d'))]
a = ask(json.dumps({'cmd': 'plan-add', 'paths': names + [
    'd', 'd/none', '../x', '/etc/passwd', names[0], {'hex': '2f'}, 7,
    'd/../d/' + names[0]]}).encode() + b'\n')
assert a['ok'] and a['added'] == len(names), a
assert a['not_file'] == 2 and a['duplicate'] == 1 and a['unknown'] == 5, a
k = ask(b'{"cmd":"keys","paths":["%s","none","d"]}\n' % names[0].encode())
assert len(k['keys'][0]['key']) == 32 and k['keys'][1:] == [None, None], k
assert ask(b'{"cmd":"plan-progress","position":3}\n')['ok']
assert ask(b'{"cmd":"plan-status"}\n')['done'] >= 3
# Another plan takes its place, and it can be dropped.
def plans():
    return ask(b'{"cmd":"status"}\n')['status']['plans']
assert ask(b'{"cmd":"plan","batch":4}\n')['ok'] and plans() == 1
assert ask(b'{"cmd":"plan-status"}\n')['positions'] == 0
assert ask(b'{"cmd":"plan-drop"}\n')['ok'] and plans() == 0
assert not ask(b'{"cmd":"plan-progress","position":3}\n')['ok']
assert ask(b'{"cmd":"plan"}\n')['ok'] and plans() == 1
f.write(b'{"cmd":"plan-add","paths":["d/fa')
f.flush()
os._exit(0)
END
wait_for 10 has_status plans 0 || fail 'its plan is left'
wait_for 10 has_status planned_bytes 0 || fail 'memory of its plan is left'

printf 'nowhere\n' >"$work/wrong"
if "$refrain" plan "$mnt" <"$work/wrong" >"$work/out" 2>"$work/err"; then
	fail 'an order of nothing is no success'
fi
grep -q 'relative to the mount.s root' "$work/err" || fail "$(cat "$work/err")"
got=0
"$refrain" plan "$mnt" --echo none </dev/null 2>"$work/err" || got=$?
expect 'a wrong echo factor' $got 2

# An order of which only each third file is read.
awk 'NR % 3 == 0' "$work/order" >"$work/third"
count
begin "$work/order" --slack 4
train "$work/third" --threads 2
kill $planning
wait $planning || :
wait_for 10 has_status planned_bytes 0 || fail 'memory of a plan is left'
note "of a wrong order $(counted prefetch_wasted) items were wasted"

# An order of files that nobody reads costs what it may have in memory, once.
window=$(status_field planned_capacity_bytes)
is_held() {
	[ "$(status_field planned_bytes)" -gt $((window - 2 * size)) ]
}
count
begin "$work/rank.0"
wait_for 20 is_held || fail 'it is not fetched ahead'
(cd "$mnt" && xargs cat) <"$work/rank.1" >"$work/read.1"
expect 'bytes beside a plan of others' "$(wc -c <"$work/read.1")" \
	$((size * files / 2))
kill $planning
wait $planning || :
wait_for 10 has_status planned_bytes 0 || fail 'memory of a plan is left'
wasted=$(($(counted prefetch_wasted) * size))
note "of an order that nobody reads $wasted bytes were wasted"
if [ $wasted -eq 0 ] || [ $wasted -gt "$window" ]; then
	fail "$wasted bytes of $window were wasted"
fi

# -- A line that is left out ---------------------------------------------------

# It is reported while the plan still waits for its readers.
order 13 >"$work/both"
echo nowhere >>"$work/both"
"$refrain" plan "$mnt" <"$work/both" >"$work/out.0" &
planning=$!
names_the_line() {
	grep -q '^1 line was left out: .* the first is nowhere' "$work/out.0"
}
wait_for 60 names_the_line || fail "not reported: $(cat "$work/out.0")"
kill $planning
wait $planning || :

# -- Many lines --------------------------------------------------------------

begun=$(date +%s%N)
before=$(status_field memory_rss_bytes)
awk -v n="$lines" 'BEGIN { for (i = 0; i < n; i++)
	printf "train/n%05d/none_%08d.JPEG\n", i / 1300, i }' >"$work/many"
cat "$work/names" >>"$work/many"
begin "$work/many" --epoch 9
lined_up() { [ "$(status_field planned_positions)" -gt 0 ]; }
wait_for 600 lined_up || fail 'the names at the end are not there'
took=$((($(date +%s%N) - begun) / 1000000))
note "$lines unknown lines in $took ms, $(($(status_field \
	memory_rss_bytes) - before)) bytes of memory"
kill $planning
wait $planning || :

# -- Python ------------------------------------------------------------------

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tools python3 - "$mnt" "$src" \
	"$work/order" <<'END' || fail 'the helper for Python'
import os, random, sys
import refrain_plan
mnt, src, order = sys.argv[1:]
names = [n.rstrip('\n') for n in open(order)]

class Random:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __iter__(self):
        return iter(random.sample(range(self.n), self.n))

# No mount: nothing happens.
s = refrain_plan.PlannedSampler(
    Random(len(names)), [os.path.join(src, n) for n in names])
assert not s.plan.active and sorted(s) == list(range(len(names)))

s = refrain_plan.PlannedSampler(
    Random(len(names)), [os.path.join(mnt, n) for n in names], batch=16)
assert s.plan.active and len(s) == len(names)
for epoch in range(2):
    seen = []
    for i in s:
        assert len(open(os.path.join(mnt, names[i]), 'rb').read()) == 50000
        seen.append(i)
    assert sorted(seen) == list(range(len(names)))
assert s.plan.flush(10)
assert s.plan.error is None and s.plan.left_out == 0, s.plan.error
s.plan.close()

with refrain_plan.Plan(os.path.join(mnt, 'd'), batch=4, echo=2.5) as p:
    p.epoch(0, (os.path.basename(n) for n in names))
    p.epoch(1, [os.path.join(mnt, 'd', 'none'), '/etc/passwd'])
    p.progress(17)
    assert p.flush(10) and p.left_out == 2, (p.left_out, p.error)
with refrain_plan.Plan(mnt, window=1, batch=9, echo=4) as p:
    p.flush(10)
    assert 'window' in p.error, p.error
END
wait_for 10 has_status plans 0 || fail 'a plan is left'
stop_mount

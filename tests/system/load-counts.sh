#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load`: counts that follow from its options, hashes that follow from
# nothing else, runs that are killed and go on, ranks, damage, and a mount
# that hangs. REFRAIN_SEED repeats the moments of the kills.
set -eu
name=load
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
batch=16
epochs=2
fresh=$((images * epochs))
data=$work/data
"$refrain" make-dataset --classes 3 --images $images --size 96x72 "$data" \
	>/dev/null

# load OPTION ...: run it on the dataset; its JSON is in $work/json.
load() {
	"$refrain" load "$data" --batch $batch --epochs $epochs --size 32 \
		--seed 5 --json "$@" >"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

# value NAME: of the last load.
value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

# is NAME WANT: of the last load; $about says which that was.
is() {
	expect "$about: $1" "$(value "$1")" "$2"
}

hashes() {
	echo "$(value stream_hash) $(value pixel_hash)"
}

# -- Counts -------------------------------------------------------------------
# servings E POINT: of a run, the last batch of fresh ones being short.
servings() {
	awk -v e="$1" -v point="$2" -v f=$fresh -v b=$batch 'BEGIN {
		if (point != "batch") {
			print int(f * e)
			exit
		}
		u = int((f + b - 1) / b)
		before = int((u - 1) * e)
		print before * b + (int(u * e) - before) * (f - (u - 1) * b)
	}'
}

plain=
for point in before after batch; do
	for e in 1 1.5 2 2.5 4 8; do
		about="echo $e $point"
		want=$(servings $e $point)
		load --echo $e --echo-point $point
		is epochs $epochs
		is fresh $fresh
		is served "$want"
		is files_read $fresh
		is decodes $fresh
		is read_items $fresh
		is redecodes 0
		is in_batch_duplicates 0
		is errors 0
		is examples $images
		is classes 3
		[ $point = batch ] || is steps $(((want + batch - 1) / batch))
		[ $e != 1 ] || [ -n "$plain" ] || plain=$(hashes)
		# Without echoes it does not matter where they would come from.
		[ $e != 1 ] || expect "$about" "$(hashes)" "$plain"
	done
done
note 'counts are right'

# Every member of the configuration is an option; hashing can be left out.
about='members'
load --no-flip --jitter 0.4,0.4,0.2 --area-min 1/2 --mean 0.5 --std 0.5 \
	--type f32 --layout nchw
is fresh $fresh
[ "$(hashes)" != "$plain" ] || fail 'members change nothing'
load --no-hash
is stream_hash "${plain% *}"
is pixel_hash ''
if "$refrain" load "$data" --batch 4 --aspect-min none 2>"$work/err"; then
	fail 'a word was taken for a number'
fi
expect 'the message' "$(cat "$work/err")" "refrain: load: --aspect-min: 'none' \
is not a number such as 2, 2.5 or 5/2"

# The shortest window that is taken: ramp, middle and drain in one run.
about='least window'
if "$refrain" load "$data" --batch $batch --echo 4 --window 100 \
	>/dev/null 2>"$work/err"; then
	fail 'a window that is too small was taken'
fi
grep -q 112 "$work/err" || fail "it does not say: 112: $(cat "$work/err")"
load --echo 4 --window 112
is served $((4 * fresh))
is decodes $fresh
is in_batch_duplicates 0
load --echo 4 --window 20 --allow-duplicates
[ "$(value in_batch_duplicates)" -gt 0 ] || fail 'no duplicates were counted'
load --drop-last --steps 7
is steps 7
load --drop-last
is steps $((fresh / batch))
is dropped_examples $((fresh % batch))

# Files that are larger than what is decoded of them: that is kept instead.
about='large files'
find "$data" -name '*.jpg' -exec sh -c 'for f; do
	cp "$f" "$0.$((i += 1)).jpg" && head -c 60000 /dev/urandom >>"$f"
done' "$work/kept" {} +
load --echo 4 --window 512 --memory 20M
is files_read $fresh
# Of the first examples, before it is known how large the files are.
is redecodes 0
is decodes $fresh
find "$data" -name '*.jpg' -exec sh -c 'for f; do
	mv "$0.$((i += 1)).jpg" "$f"
done' "$work/kept" {} +

# -- The same at any number of threads ----------------------------------------
for point in before after batch; do
	about="threads, $point"
	load --echo 2.5 --echo-point $point --threads 1 --type f32 \
		--layout nchw
	want=$(hashes)
	for t in 1 2 4 8; do
		load --echo 2.5 --echo-point $point --threads $t --type f32 \
			--layout nchw --batches-ahead $t \
			--reads-ahead $((t * t))
		expect "$about $t" "$(hashes)" "$want"
	done
	# Another seed is another stream.
	load --echo 2.5 --echo-point $point --seed 6
	[ "$(hashes)" != "$want" ] || fail "$about: the seed changes nothing"
done
note 'hashes are the same at any number of threads'

# -- The same examples from elsewhere ------------------------------------------
about='other sources'
folder=$data
load --echo 2
want=$(hashes)
"$refrain" index "$data" >"$work/list"
python3 - "$data" "$work/examples.tar" <<'END' || fail 'cannot make a tar'
import io, os, sys, tarfile

top = sys.argv[1]
with tarfile.open(sys.argv[2], 'w') as tar:
    for label, folder in enumerate(sorted(os.listdir(top))):
        for name in sorted(os.listdir(os.path.join(top, folder))):
            path = folder + '/' + name
            tar.add(os.path.join(top, path), path)
            text = b'%d' % label
            info = tarfile.TarInfo(path[:-4] + '.cls')
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
END
data=$work/list
load --echo 2 --root "$folder"
expect 'from a list' "$(hashes)" "$want"
data=$work/examples.tar
load --echo 2
expect 'from a tar' "$(hashes)" "$want"
is files_read $fresh
# 100 records of 8 bytes of a label and 64 of data.
data=$work/records.bin
head -c 7200 /dev/zero >"$data"
load --echo 1.5 --source raw --record-bytes 72 --label-bytes 8
is examples 100
is served 300
data=$folder
note 'lists, tars and records give the same'

# -- Fresh ones: all of them, once an epoch -----------------------------------
# covers TIMES TRACE ...: each example is fresh so often in them together.
covers() {
	times=$1
	shift
	cat "$@" | awk -v times="$times" -v images=$images '
		$3 == 0 { n[$2]++ }
		END {
			for (i = 0; i < images; i++)
				if (n[i] != times) {
					print i " was fresh " n[i] + 0 " times"
					exit 1
				}
		}' || fail "the examples are not covered by $*"
}

load --echo 2 --trace "$work/all" --step-log "$work/steps"
expect 'lines of the step log' "$(wc -l <"$work/steps")" "$(value steps)"
expect 'fresh and ends of the step log' "$(awk '
	$2 < t || $3 > 60e6 { print "wrong", $0 }
	$6 != ($5 ? ended++ : "-") { print "wrong epoch", $0 }
	{ t = $2; fresh += $4; ends += $5 }
	END { print fresh, ends }' "$work/steps")" "$fresh $epochs"
covers $epochs "$work/all"
awk '$3 == 0' "$work/all" | head -n $images >"$work/epoch"
covers 1 "$work/epoch"
expect 'lines of the trace' "$(wc -l <"$work/all")" $((2 * fresh))
for world in 2 3 7; do
	most=0 least=1000000 rank=0
	rm -f "$work"/rank.*
	while [ $rank -lt $world ]; do
		load --echo 1.5 --world $world --rank $rank \
			--trace "$work/rank.$rank"
		steps=$(value steps)
		[ "$steps" -le "$most" ] || most=$steps
		[ "$steps" -ge "$least" ] || least=$steps
		rank=$((rank + 1))
	done
	covers $epochs "$work"/rank.*
	[ $((most - least)) -le 1 ] ||
		fail "world $world: between $least and $most steps"
done
note 'ranks share the examples'

# -- Stopped and gone on ------------------------------------------------------
# stops E STEP ...: a run in pieces of so many steps is that of one piece.
stops() {
	e=$1
	shift
	rm -f "$work/state" "$work/pieces"
	load --echo "$e" --trace "$work/whole"
	for steps; do
		load --echo "$e" --state "$work/state" --trace "$work/pieces" \
			--steps "$steps" --threads $((steps % 3 + 1))
	done
	cmp "$work/whole" "$work/pieces" || fail "stopped at $*, echo $e"
}
stops 2 1 9 5 11 1 1000 1000
stops 2.5 40 1 1000
stops 1 19 1000
# At the very end, with the last step of its own.
stops 1 37 1 1 1
about='after the end'
is served 0

# Killed at any moment, until it is through.
REFRAIN_SEED=${REFRAIN_SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
load --echo 1.5 --trace "$work/whole"
rm -f "$work/state" "$work/pieces"
: >"$work/before"
kills=0
most=10
status=1
while [ $status -ne 0 ]; do
	kills=$((kills + 1))
	[ $kills -lt 200 ] || fail "not through after $kills kills"
	after=$(awk -v s="$REFRAIN_SEED" -v n=$kills -v most=$most \
		'BEGIN { srand(s + n); print 0.03 + rand() * most / 100 }')
	status=0
	timeout -s KILL "$after" "$refrain" load "$data" --batch $batch \
		--epochs $epochs --size 32 --seed 5 --echo 1.5 --step-ms 5 \
		--threads 2 --state "$work/state" --trace "$work/pieces" \
		>"$work/out" 2>&1 || status=$?
	[ $status -eq 0 ] || [ $status -eq 137 ] || {
		cat "$work/out"
		fail "exit $status, seed $REFRAIN_SEED"
	}
	# Where all is slower, it gets more time.
	if [ -f "$work/state" ] && ! cmp -s "$work/state" "$work/before"; then
		cp "$work/state" "$work/before"
	else
		most=$((most * 2))
	fi
done
cmp "$work/whole" "$work/pieces" || fail "killed, seed $REFRAIN_SEED"
note "killed $((kills - 1)) times, and the stream is whole"

# With another number of ranks: what nobody had, and nothing twice.
for steps in 7 20; do
	rm -f "$work/state" "$work/pieces"
	load --echo 2 --state "$work/state" --trace "$work/pieces" \
		--steps $steps
	lines=$(wc -l <"$work/pieces")
	cp "$work/pieces" "$work/all"
	for rank in 0 1 2; do
		cp "$work/state" "$work/state.$rank"
		cp "$work/pieces" "$work/pieces.$rank"
		load --echo 2 --world 3 --rank $rank \
			--state "$work/state.$rank" \
			--trace "$work/pieces.$rank"
		[ "$(value dropped_echoes)" -gt 0 ] ||
			fail 'no echoes were owed at the change'
		tail -n +$((lines + 1)) "$work/pieces.$rank" >>"$work/all"
	done
	covers $epochs "$work/all"
done

# refused TEXT OPTION ...: exit 1 or 2 and one line with the text.
refused() {
	text=$1
	shift
	if "$refrain" load "$data" --batch $batch --epochs $epochs --size 32 \
		--seed 5 "$@" >"$work/out" 2>"$work/err"; then
		fail "not refused: $*"
	fi
	expect "lines for $*" "$(wc -l <"$work/err")" 1
	grep -q "$text" "$work/err" || fail "$*: $(cat "$work/err")"
}
refused seed --echo 2 --state "$work/state" --seed 6
refused echo --echo 3 --state "$work/state"
refused shorter --echo 2 --state "$work/state" --trace "$work/new"
printf x >>"$work/state"
refused damaged --echo 2 --state "$work/state"
refused auto --echo auto --world 2
refused "needs --echo auto" --echo-log "$work/log"
refused 'before|after|batch' --echo-point middle
refused echo --echo 0.5
refused rank --world 2 --rank 2
refused policy --policy ignore
note 'it goes on where it was'

# -- Damage -------------------------------------------------------------------
cp -r "$data" "$work/damaged"
python3 - "$work/damaged" <<'END' || fail 'cannot damage the dataset'
import os, random, sys

top = sys.argv[1]
files = sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs)
random.seed(1)
bad = random.sample(files, 6)


def put(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def get(path):
    with open(path, 'rb') as f:
        return f.read()


def sized(data, height, width):
    at = data.index(b'\xff\xc0') + 5
    return data[:at] + bytes([height >> 8, height & 255, width >> 8,
                              width & 255]) + data[at + 4:]


put(bad[0], b'')
put(bad[1], get(bad[1])[:100])
put(bad[2], random.randbytes(3000))
put(bad[3], b'<!DOCTYPE html>\n<html><title>404</title></html>\n')
put(bad[4], sized(get(bad[4]), 65500, 65500))
put(bad[5], b'\x89PNG\r\n\x1a\n' + bytes(100))
END
data=$work/damaged
want=
for t in 1 4; do
	about="damage, $t threads"
	load --echo 2 --threads $t
	is served $((2 * fresh))
	is fresh $fresh
	is zero_filled 0
	[ "$(value errors)" -ge 6 ] || fail "$about: $(value errors) errors"
	[ "$(value substituted)" -ge 24 ] ||
		fail "$about: $(value substituted) substituted"
	[ -n "$want" ] || want=$(hashes)
	expect "$about" "$(hashes)" "$want"
done
about='damage, zeroed'
load --echo 2 --policy zero
is served $((2 * fresh))
is substituted 0
is zero_filled 24
zeroed=$(hashes)
refused jpg --policy fail
# The members of a tar are looked into as the files of a folder are.
tar --sort=name -C "$work/damaged" -cf "$work/damaged.tar" .
data=$work/damaged.tar
about='damage in a tar'
load --echo 2
expect "$about" "$(hashes)" "$want"
load --echo 2 --policy zero
is zero_filled 24
is errors $((6 * epochs))
expect "$about, zeroed" "$(hashes)" "$zeroed"
refused jpg --policy fail
# Ranks go in step, whoever has the damaged ones.
for policy in substitute zero; do
	for rank in 0 1 2; do
		about="damage, rank $rank, $policy"
		load --echo 2 --policy $policy --world 3 --rank $rank
		is served $((2 * fresh / 3))
		is steps $(((2 * fresh / 3 + batch - 1) / batch))
	done
done
data=$work/data
note 'damage is passed over'

# -- Little memory -------------------------------------------------------------
# tight MEMORY: the report of a run on images too large for the memory.
tight() {
	"$refrain" load "$work/large" --batch 16 --epochs 2 --size 32 --echo 2 \
		--memory "$1" >"$work/out" || fail "load --memory $1"
}

"$refrain" make-dataset --classes 2 --images 200 --size 640x480 \
	"$work/large" >/dev/null
tight 8M
again=$(sed -n 's/^rereads  *\([0-9]*\) files .*/\1/p' "$work/out")
wanted=$(sed -n 's/^rereads .* --memory \([0-9]*M\),.*/\1/p' "$work/out")
[ -n "$again" ] && [ -n "$wanted" ] ||
	fail "rereads are not reported: $(cat "$work/out")"
tight "$wanted"
now=$(sed -n 's/^rereads  *\([0-9]*\) files .*/\1/p' "$work/out")
[ "${now:-0}" -le $((again / 50)) ] ||
	fail "$again files were read again, and $now with --memory $wanted"
note "$again rereads, and ${now:-0} with --memory $wanted as advised"

# -- Zero is the default ------------------------------------------------------
load --size 224
with_default=$(hashes)
load --size 32
[ "$(hashes)" != "$with_default" ] || fail '--size 32 has the pixels of 224'
load --size 0
expect '--size 0' "$(hashes)" "$with_default"
note '--size 0 is the default'

# -- Progress ------------------------------------------------------------------
# A decoder that is slower than the trainer, so that the factor rises.
if command -v script >/dev/null; then
	"$refrain" make-dataset --classes 2 --images 200 --size 640x480 \
		"$work/slow" >/dev/null
	script -qec "'$refrain' load '$work/slow' --batch 4 --epochs 8 \
		--echo auto --threads 1 --window 256 --size 32 --step-ms 1 \
		--batches-ahead 2 --reads-ahead 8" "$work/typed" >"$work/out"
	grep -q '^factor' "$work/out" || fail 'load --echo auto on a terminal'
	tr '\r' '\n' <"$work/out" | sed -n 's/.*\] *\([0-9]*\) %.*/\1/p' \
		>"$work/percents"
	[ -s "$work/percents" ] || fail 'no progress was shown'
	over=$(awk '$1 > 100' "$work/percents" | head -n 1)
	[ -z "$over" ] || fail "--echo auto: the progress is $over %"
	note 'the progress ends at 100 %'
fi

# -- What is left out ----------------------------------------------------------
mkdir "$work/left" "$work/left/a" "$work/left/b"
printf png >"$work/left/a/1.png"
cp "$(find "$data/" -name '*.jpg' | head -n 1)" "$work/left/b/"
"$refrain" load "$work/left" --batch 1 >"$work/out" || fail 'load with a PNG'
grep -q "^skipped  *1 files .* the first is 'a/1.png'" "$work/out" ||
	fail "the skipped file is not named: $(cat "$work/out")"
grep -q "^empty  *1 of 2 classes .* the first is 'a'" "$work/out" ||
	fail "the empty class is not named: $(cat "$work/out")"
"$refrain" load "$work/left" --batch 1 --json >"$work/json" ||
	fail 'load --json with a PNG'
about='a folder with a PNG'
is skipped_files 1
is skipped_first a/1.png
is empty_classes 1
is empty_first a
is classes 2
note 'what is left out is counted and named'

# -- A mount that hangs -------------------------------------------------------
if [ "$(id -u)" -ne 0 ] || [ ! -w /dev/fuse ]; then
	note 'no mount here: that part is left out'
	exit 0
fi
now_ms() {
	echo $(($(date +%s%N) / 1000000))
}
start_mount "$data" "$mnt" --cache "$work/tier:1M"
scan_through
# How long it takes here when nothing hangs: busy machines are slow.
began=$(now_ms)
"$refrain" load "$data" --batch 4 >/dev/null || fail "load '$data'"
usual_ms=$(($(now_ms) - began))
# What is opened hangs: the kernel knows the root's name, but not what is in it.
stop_process "$daemon"
stopped=$(now_ms)
status=0
# A search for leaks would first have to stop the thread that hangs.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
	"$refrain" load "$mnt" --batch 4 --timeout 1 \
	>"$work/out" 2>"$work/err" || status=$?
took_ms=$(($(now_ms) - stopped))
kill -CONT "$daemon"
expect 'exit status of an open that hangs' $status 1
grep -q "opening '$mnt': no answer for 1.0 s while " "$work/err" ||
	fail "it does not say where: $(cat "$work/err")"
[ $took_ms -lt $((2500 * patience + 3 * usual_ms)) ] ||
	fail "that took $took_ms ms"
note "an open that hangs is left after $took_ms ms: $(cat "$work/err")"

: >"$work/trace"
# What is in the tier could be read without the mount.
"$refrain" load "$mnt" --batch 4 --reads-ahead 8 --batches-ahead 2 \
	--no-mount-help --step-ms 20 --timeout 1 --trace "$work/trace" \
	>"$work/out" 2>"$work/err" &
loader=$!
some_lines() {
	[ "$(wc -l <"$work/trace")" -ge 12 ]
}
wait_for 20 some_lines || fail 'the loader does not start on a mount'
stop_process "$daemon"
stopped=$(now_ms)
wait_for 20 test -s "$work/err" || {
	kill -CONT "$daemon"
	fail 'no time-out on a mount that hangs'
}
took_ms=$(($(now_ms) - stopped))
kill -CONT "$daemon"
status=0
wait $loader || status=$?
expect 'exit status on a mount that hangs' $status 1
grep -q read "$work/err" || fail "it does not say where: $(cat "$work/err")"
# Its time-out, a second for the end, and what was ready or is slow here.
[ $took_ms -lt $((4000 * patience + 3 * usual_ms)) ] ||
	fail "that took $took_ms ms"
stop_mount
note "a mount that hangs is left after $took_ms ms"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The trainer of the experiments: its counts are those that the echo factor
# asks for, the same seed makes the same model on one thread or two of the
# loader, it stops where it should, and it learns from text, too. The driver
# lists its runs, and the document's tables are those of the results.
set -eu
train=$PWD/experiments/echo-train
experiments=$(dirname "$0")
[ -x "$train" ] || {
	echo 'skipped: experiments/echo-train is not built: no BLAS'
	exit 77
}
work=$(mktemp -d "$PWD/experiments.XXXXXX")
trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$work/cache
PYTHONDONTWRITEBYTECODE=1
OPENBLAS_NUM_THREADS=1
export XDG_CACHE_HOME PYTHONDONTWRITEBYTECODE OPENBLAS_NUM_THREADS

fail() {
	echo "FAILED: $*"
	exit 1
}

./refrain make-dataset --classes 4 --images 640 --size 32x32 \
	"$work/images" >/dev/null

# train OPTION ...: its lines are in $work/out, the last number of a name is
# what `last` says.
train() {
	"$train" --batch 32 --size 16 --width 6 --report-every 320 "$@" \
		>"$work/out" || fail "echo-train $*"
}

last() {
	sed -n "s/.*\"event\":\"report\".*[,{]\"$1\":\([^,}]*\).*/\1/p" \
		"$work/out" | tail -n 1
}

expect() {
	[ "$2" = "$3" ] || {
		cat "$work/out"
		fail "$1 is $2, not $3"
	}
}

# -- What is counted ----------------------------------------------------------
train --echo 2 --window 256 --held-out "$work/images" "$work/images"
expect steps "$(last step)" 40
expect fresh "$(last fresh)" 640
expect served "$(last served)" 1280
expect decodes "$(last decodes)" 640
sed 's/,"r":.*//; /"event":"end"/d' "$work/out" >"$work/one"
train --echo 2 --window 256 --held-out "$work/images" --threads 2 \
	"$work/images"
sed 's/,"r":.*//; /"event":"end"/d' "$work/out" >"$work/two"
# What was decoded ahead at a report depends on time.
for f in one two; do
	sed 's/"files_read":[0-9]*,"decodes":[0-9]*,//' "$work/$f" \
		>"$work/$f.told"
done
cmp "$work/one.told" "$work/two.told" || fail 'threads change the figures'
last_score=$(last score)
awk "BEGIN { exit !($last_score > 0.4) }" ||
	fail "it has learned to $last_score only"

# -- Where it stops -----------------------------------------------------------
train --echo 4 --window 256 --held-out "$work/images" --target 0.3 --smooth 2 \
	--epochs 50 "$work/images"
grep -q '"event":"end","reached":true' "$work/out" || {
	cat "$work/out"
	fail 'the target is not reached'
}
mean=$(last mean)
awk "BEGIN { exit !($mean >= 0.3) }" || fail "it stops at $mean"
train --steps 3 --schedule linear "$work/images"
expect steps "$(last step)" 3
"$train" --target 0.5 "$work/images" 2>"$work/err" &&
	fail 'a target without anything to score by is taken'
grep -q -- --held-out "$work/err" || fail "$(cat "$work/err")"

# -- Text ---------------------------------------------------------------------
cat "$experiments"/*.[ch] >"$work/text"
head -c 24000 "$work/text" >"$work/train.raw"
tail -c 4000 "$work/train.raw" >"$work/held.raw"
train --text --lr 0.8 --decay 0 --epochs 3 --echo 2 --window 256 \
	--held-out "$work/held.raw" "$work/train.raw"
expect fresh "$(last fresh)" 1800
last_score=$(last score)
awk "BEGIN { exit !($last_score < 4) }" ||
	fail "text: $last_score nats a byte"

# -- The driver and the document ----------------------------------------------
command -v python3 >/dev/null || exit 0
python3 "$experiments/run.py" --list --build . --out "$work/results" \
	>"$work/out" || fail 'the driver lists nothing'
grep -q 'factor: e4-seed1$' "$work/out" || fail "$(cat "$work/out")"
python3 "$experiments/report.py" --check ||
	fail 'doc/echoing.md is not what experiments/report.py makes'
mkdir "$work/doc"
cp "$experiments/../doc/echoing.md" "$work/doc"
cp -r "$experiments/../doc/echoing" "$work/doc"
chmod -R u+w "$work/doc"
report() {
	python3 "$experiments/report.py" --document "$work/doc/echoing.md" "$@"
}
report --check || fail 'a copy of the document is not the same'
sed -i 's/^| e = 4 | \(.*\)0/| e = 4 | \11/' "$work/doc/echoing.md"
report --check >/dev/null && fail 'a wrong figure is not noticed'
report >/dev/null
cmp "$experiments/../doc/echoing.md" "$work/doc/echoing.md" ||
	fail 'a wrong figure is not mended'

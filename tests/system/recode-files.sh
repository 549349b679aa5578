#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain recode` keeps names, other files and times, marks what it re-codes,
# never loses silently or twice, never writes to its source, and reads nothing
# if nothing has changed.
set -eu
name=recode-files
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires sha256sum python3
# shellcheck source=tests/system/recode-lib.sh
. "$(dirname "$0")/recode-lib.sh"

(cd "$data" && find . -type f -exec sha256sum {} +) >"$work/sums"

# -- Without loss
ends 0 "^$images re-coded" --progressive "$data" "$work/prog"
expect recoded "$(report "$work/prog" recoded)" $images
expect other "$(report "$work/prog" other)" 3
expect odd "$(report "$work/prog" odd)" 1
grep -q 'cut.jpg: truncated' "$work/out" || fail "$(cat "$work/out")"
names "$data" >"$work/names.1"
names "$work/prog" >"$work/names.2"
cmp "$work/names.1" "$work/names.2" || fail 'names differ'
for f in class_000/notes.txt nothing.jpg class_001/other.gif \
	class_002/cut.jpg; do
	cmp "$data/$f" "$work/prog/$f" || fail "$f is not as it was"
done
ends 0 "^$images re-coded" "$work/prog" "$work/base"
ends 0 '^0 re-coded' "$work/base" "$work/nothing"
cmp "$work/base/class_000/00000001.jpg" \
	"$work/nothing/class_000/00000001.jpg" || fail 'kept, but not equal'
ends 0 "^$images re-coded" --restart row "$data" "$work/rows"
for d in prog base rows; do
	grep -q '"rendition": ""' "$work/$d/recode.json" || fail "$d is a loss"
	for f in "$work/$d"/class_*/0*.jpg; do
		grep -aq 'refrain recode 1 .*source=[0-9a-f]\{16\}' "$f" ||
			fail "$f has no mark"
	done
done
if command -v djpeg >/dev/null; then
	for f in "$data"/class_*/0*.jpg; do
		djpeg "$f" >"$work/1.ppm"
		for d in prog base rows; do
			djpeg "$work/$d/${f#"$data/"}" 2>"$work/err" \
				>"$work/2.ppm"
			cmp "$work/1.ppm" "$work/2.ppm" || fail "$d: $f"
			[ ! -s "$work/err" ] || fail "$(cat "$work/err")"
		done
	done
fi
# levels INDEX: the lines that have levels, without times
levels() {
	awk -F'\t' '$5 != "" { print $1, $2, $5, $6, $7 }' "$1"
}
"$refrain" index --levels "$work/prog" >"$work/index"
levels "$work/index" >"$work/levels.1"
levels "$work/prog/recode.index" >"$work/levels.2"
expect 'files with levels' "$(wc -l <"$work/levels.1")" $images
cmp "$work/levels.1" "$work/levels.2" || fail 'recode.index has other levels'
note 'without loss, names, times, pixels and other files stay'

# -- With loss
ends 2 'name the quality' --size 100 "$data" "$work/lossy"
ends 2 'only one of' --baseline --quality 80 "$data" "$work/lossy"
ends 2 'must be 1 to 100' --quality 101 "$data" "$work/lossy"
ends 0 'images compared: PSNR' --quality 40 "$data" "$work/lossy"
grep -q '"rendition": "quality=40"' "$work/lossy/recode.json" ||
	fail "$(cat "$work/lossy/recode.json")"
[ "$(report "$work/lossy" bytes)" -lt \
	$(($(report "$work/lossy" source_bytes) * 3 / 4)) ] ||
	fail 'fewer bytes than expected were saved'
ends 1 'would lose again' --quality 30 "$work/lossy" "$work/twice"
rm "$work/lossy/recode.json"
ends 1 '(quality=40 source=.*would lose again' --quality 30 "$work/lossy" \
	"$work/twice"
ends 0 "^0 re-coded" "$work/lossy" "$work/copy"
rm -r "$work/twice"
ends 0 re-coded --quality 40 "$data" "$work/lossy"
ends 0 re-coded --again --quality 30 "$work/lossy" "$work/twice"
grep -q '"rendition": "quality=30 of quality=40"' "$work/twice/recode.json" ||
	fail "$(cat "$work/twice/recode.json")"
ends 0 re-coded "$work/twice" "$work/after"
grep -q '"rendition": "quality=30 of quality=40"' "$work/after/recode.json" ||
	fail 'a copy without loss forgets an earlier loss'
note 'every loss was asked for, and is marked'

# -- Targets
ends 1 'inside the other' "$data" "$data/inside"
rmdir "$data/inside"
ends 1 'the same directory' "$data" "$data"
mkdir "$work/full"
: >"$work/full/file"
ends 1 'is not empty' "$data" "$work/full"
ends 1 'made with other options: quality=40' --quality 41 "$data" "$work/lossy"
ends 1 'cannot open' "$work/nowhere" "$work/new"

# -- A second run
cp -a "$work/lossy" "$work/before"
chmod 0 "$data"/class_*/0*.jpg
[ "$(id -u)" -eq 0 ] || ends 0 'nothing has changed' --quality 40 "$data" \
	"$work/lossy"
chmod 644 "$data"/class_*/0*.jpg
if command -v strace >/dev/null; then
	strace -f -e trace=openat -o "$work/trace" "$refrain" recode \
		--quality 40 "$data" "$work/lossy" >/dev/null
	! grep -q '0000.*\.jpg' "$work/trace" || fail 'a second run reads files'
fi
ends 0 'nothing has changed' --quality 40 "$data" "$work/lossy"
same "$work/before" "$work/lossy"
rm "$work/lossy/class_001/00000002.jpg"
touch -d 2001-01-01 "$data/class_001/00000003.jpg"
ends 0 re-coded --quality 40 "$data" "$work/lossy"
[ "$(stat -c %y "$work/lossy/class_001/00000003.jpg" | cut -c 1-4)" = 2001 ] ||
	fail 'a file that has changed was not made again'
touch -r "$work/before/class_001/00000003.jpg" \
	"$data/class_001/00000003.jpg"
ends 0 re-coded --quality 40 "$data" "$work/lossy"
same "$work/before" "$work/lossy"
(cd "$data" && sha256sum --quiet -c "$work/sums") ||
	fail 'the source has changed'
note 'a second run makes only what is missing or has changed'

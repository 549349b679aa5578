#!/bin/sh
# SPDX-License-Identifier: MIT
#
# mount --drop-bits: each progressive JPEG is its prefix by the index and an end
# marker, every other file is whole, and a cold pass reads just that. A tier
# that has had one level gives no byte of it to another. A changed file is
# whole. A store works as a directory does.
set -u
name=drop-bits
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse python3 cjpeg djpeg

oracle=$(dirname "$0")/drop_bits.py
python3 "$oracle" make "$src" || fail 'no dataset'

levels() {
	"$refrain" index --levels "$src" -o "$work/index" || fail 'no index'
}
# same BITS OPTION ...: mount that level, and compare every byte.
same() {
	bits=$1
	shift
	[ "$bits" = 0 ] || set -- --drop-bits "$bits" "$@"
	start_mount "$source" "$work/mnt" --cache "$work/tier:60M" "$@"
	python3 "$oracle" check "$src" "$mnt" "$bits" >"$work/said" 2>&1 ||
		fail "level $bits: $(cat "$work/said")"
	expect errors "$(status_field reader_errors)" 0
}
# shown BITS OPTION ...: the same with an empty tier. A pass reads each byte
# that is shown once.
shown() {
	rm -rf "$work/tier"
	same "$@"
	read -r bytes short whole <"$work/said"
	expect "origin bytes of level $1" "$(status_field origin_bytes)" \
		"$bytes"
	expect shortened "$(status_field files_shortened)" "$short"
	expect whole "$(status_field files_whole)" "$whole"
}

# -- Levels after one another in one tier -------------------------------------

source=$src
levels
for bits in 2 1 0 1 2; do
	set -- $([ $bits = 0 ] || echo --levels "$work/index")
	same $bits "$@"
	[ $bits = 0 ] || grep -q "drop-bits=$bits " "$mnt/recode.json" ||
		fail 'recode.json does not name the level'
	[ $bits != 0 ] || [ ! -e "$mnt/recode.json" ] || fail 'a file too many'
	stop_mount
	# The same level again is all in the tier.
	same $bits "$@"
	expect "origin bytes of level $bits again" \
		"$(status_field origin_bytes)" 0
	stop_mount
done
shown 1 --levels "$work/index"
stop_mount

# -- A file that has changed is whole, and the next index has its level --------

python3 "$oracle" change "$src"
rm -rf "$work/tier"
start_mount "$src" "$work/mnt" --cache "$work/tier:60M" --drop-bits 2 \
	--levels "$work/index"
cmp "$src/a/changed.jpg" "$mnt/a/changed.jpg" || fail 'not the changed file'
stop_mount
levels
shown 2 --levels "$work/index"

# -- The same level after an upgrade -------------------------------------------

"$refrain" upgrade "$mnt" || fail 'no upgrade'
python3 "$oracle" check "$src" "$mnt" 2 >"$work/said" 2>&1 ||
	fail "after an upgrade: $(cat "$work/said")"
stop_mount

# -- What is refused ----------------------------------------------------------

refused() {
	want=$1
	shift
	"$refrain" mount "$src" "$work/mnt" --cache "$work/tier:60M" "$@" \
		>"$work/said" 2>&1 && fail "mounted: $*"
	grep -q -- "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
}
refused 'must be 1 or 2' --drop-bits 3 --levels "$work/index"
refused 'is for --drop-bits' --levels "$work/index"
refused 'No such file' --drop-bits 1
"$refrain" index "$src" -o "$work/plain"
refused 'it has no levels' --drop-bits 1 --levels "$work/plain"
tab=$(printf '\t')
sed "s/$tab\([0-9]\)\([0-9]*$tab[^$tab]*\)\$/${tab}9999999\1\2/" \
	"$work/index" >"$work/bad"
cmp -s "$work/index" "$work/bad" && fail 'nothing was changed'
refused 'its levels are not valid' --drop-bits 1 --levels "$work/bad"

# -- A store ------------------------------------------------------------------

[ -x tests/system/far ] && command -v curl >/dev/null || exit 0
far_start
(cd "$src" && find . -type f -printf '%P\n') | while read -r file; do
	curl -fsS -T "$src/$file" "$far/set/$file" || exit 1
done || fail 'the store takes no file'
"$refrain" index --levels s3://set --endpoint-url "$far" -o "$work/index" ||
	fail 'no index of the store'
source=s3://set
shown 2 --endpoint-url "$far" --levels "$work/index"
stop_mount
shown 1 --endpoint-url "$far" --manifest "$work/index"
stop_mount
curl -fsS -T "$work/index" "$far/set/recode.index" || fail 'no index there'
cp "$work/index" "$src/recode.index"
shown 2 --endpoint-url "$far"
stop_mount

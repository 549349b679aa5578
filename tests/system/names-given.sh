#!/bin/sh
# SPDX-License-Identifier: MIT
#
# mount --manifest: names from an index instead of a listing, for a bucket that
# may not be listed and a web server that has no index. An index of another
# source is refused. If the index is damaged later, the known names stay.
set -u
name=given-names
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl
[ -x tests/system/far ] || skip 'built without http and s3'

far_start files=40 size=3000 dirs=4
index=$work/index
# given SOURCE OPTION ...
given() {
	what=$1
	shift
	start_mount "$what" "$work/mnt" --cache "$work/tier:20M" \
		--endpoint-url "$far" "$@"
	scan_through
}

# shows N: check that the mount has N files, with the bytes of the store.
shows() {
	expect files "$(find "$mnt" -type f | wc -l)" "$1"
	cat "$mnt"/d*/*.bin | cmp - "$work/all" || fail 'other bytes'
}

"$refrain" index s3://many --endpoint-url "$far" -o "$index" || fail 'no index'
start_mount s3://many "$work/mnt" --cache "$work/tier:20M" --endpoint-url "$far"
scan_through
cat "$mnt"/d*/*.bin >"$work/all"
stop_mount
rm -rf "$work/tier"

# -- A bucket that may not be listed, and a path that is relative
far_set no_list=1
far_zero
cd "$work" || fail cd
given s3://many --manifest index
cd .. || fail cd
expect 'pages that were listed' "$(far_count lists)" 0
shows 40
expect 'GETs for 40 files' "$(far_count gets)" 40
ls "$mnt/d0000000/none" 2>/dev/null && fail 'a name from nowhere'
stop_mount

# -- A remount asks nothing; another content of the index counts
far_zero
given s3://many --manifest "$index"
shows 40
expect 'requests of a remount' "$(status_field origin_requests)" 0
stop_mount
grep -v f0000007.bin "$index" >"$index.new" && mv "$index.new" "$index"
given s3://many --manifest "$index"
expect 'files of another index' "$(find "$mnt" -type f | wc -l)" 39
expect 'GETs for another index' "$(far_count gets)" 0

# -- refresh reads it again; a spoiled one changes nothing
head -n 11 "$index" >"$index.new" && mv "$index.new" "$index"
"$refrain" refresh "$mnt" >/dev/null || fail 'no refresh'
expect 'files after a refresh' "$(find "$mnt" -type f | wc -l)" 10
printf 'x\ty\n' >>"$index"
"$refrain" refresh "$mnt" >/dev/null 2>&1 && fail 'refreshed from rubbish'
wait_for 10 grep -q 'names of --manifest: line 12: ' "$daemon_err" ||
	fail 'the log does not name the line'
expect 'files after a bad refresh' "$(find "$mnt" -type f | wc -l)" 10
stop_mount
rm -rf "$work/tier"

# -- A web server without an index of its own; the manifest is there, too
far_set no_list=0
"$refrain" index s3://many --endpoint-url "$far" -o "$index" || fail 'no index'
curl -sf -H Expect: -T "$index" "$far/meta/the%20names" ||
	fail 'cannot put the index'
far_set no_list=1 verify=0
given "$far/many" --manifest "$far/meta/the%20names" --revalidate 1
shows 40
stop_mount
mv "$work/tier" "$work/kept"

# -- What does not fit is refused, in one line
refused() {
	want=$1 what=$2
	shift 2
	"$refrain" mount "$what" "$work/mnt" --cache "$work/other:10M" \
		--endpoint-url "$far" "$@" >"$work/said" 2>&1 &&
		fail "mounted: $*"
	expect "lines for $want" "$(wc -l <"$work/said")" 1
	grep -q -- "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
}
far_set verify=1
head=$(head -n 1 "$index")
refused 'No such file' s3://many --manifest "$work/none"
refused 'line 1: .*refrain index' s3://many --manifest "$0"
printf '%s\n' "$head" >"$work/bad"
refused 'has no files' s3://many --manifest "$work/bad"
printf '%s\n../x\t1\t\t\t\n' "$head" >"$work/bad"
refused 'line 2: its path is not valid' s3://many --manifest "$work/bad"
printf '%s\na\t1\t1.5x\t\t\n' "$head" >"$work/bad"
refused 'line 2: its time' s3://many --manifest "$work/bad"
sed 's/	3000	/	3001	/' "$index" >"$work/bad"
refused 'does not match the source' s3://many --manifest "$work/bad"
refused 'does not match the source' s3://many/d0000001 --manifest "$index"
refused 'cannot read .*/meta/nothing' s3://many --manifest "$far/meta/nothing"
refused '--manifest is for' "$src" --manifest "$index"

# -- Nothing needs the web server while the names are kept
kill "$far_pid"
wait "$far_pid" 2>/dev/null
mv "$work/kept" "$work/tier"
given "$far/many" --manifest "$far/meta/the%20names"
shows 40
stop_mount

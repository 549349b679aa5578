#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Many readers open the same file at once, which is not cached. The origin sends
# each byte once. All readers get the right bytes, and the first bytes long
# before the file is complete.
set -eu
name=herd
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

readers=64
bytes=50000000
rate=25M

# stampede WHAT HOW OPTION ...: let all readers read a file in the way HOW; WHAT
# describes the file in messages.
stampede() {
	what=$1
	how=$2
	shift 2
	rm -rf "$work/cache"
	start_mount "$src" "$mnt" --cache "$work/cache:100M" \
		--fault "rate=$rate" "$@"
	scan_through
	before=$(status_field origin_bytes)
	# shellcheck disable=SC2086 # a word or none
	said=$("$helpers/herd" $readers "$mnt/file" "$src/file" $how) ||
		fail "$what, $how: readers with wrong bytes: $said"
	# shellcheck disable=SC2086 # three numbers
	set -- $said
	note "$what, ${how:-cached}: the last of $readers readers had its" \
		"first bytes after $2 ms, the first all of them after $3 ms"
	expect 'origin bytes' $(($(status_field origin_bytes) - before)) $bytes
	[ $(($2 * 10)) -lt $(($3 * 9)) ] || fail 'the first bytes came late'
	expect 'origin reads that failed' "$(status_field origin_errors)" 0
	stop_mount
}

python3 -c "
import random
open('$src/file', 'wb').write(random.Random(3).randbytes($bytes))"
stampede 'one item' '' --limit 64M
stampede 'one item' direct --limit 64M
stampede 'in chunks' direct

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # variables come from lib.sh
#
# For tests that look inside a mount; sourced after lib.sh. Mounts a file that
# can be made to hang at the origin, and one that is cached.

# debug EXPRESSION: print a Python expression about `status --debug`. `d` is the
# whole answer; `f` and `r` are the fills and the requests of the file that
# hangs.
debug() {
	"$refrain" status --debug --json "$mnt" |
		python3 -c "import json, sys
d = json.load(sys.stdin)
f = [x for x in d['oldest_fills'] if x['path'] == 'hang/a']
r = [x for x in d['oldest_requests'] if x['path'] == 'hang/a']
print($1)"
}

is() {
	[ "$(debug "$1")" = True ]
}

mkdir "$src/hang"
head -c 200000 /dev/urandom >"$src/hang/a"
head -c 5000 /dev/urandom >"$src/b"
start_mount "$src" "$mnt" --cache "$work/cache:100M" --fault ''
scan_through
cat "$mnt/b" >"$work/out"

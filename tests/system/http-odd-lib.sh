# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of web servers with odd habits; sourced after far-lib.sh. Starts
# odd_server.py at $port, with files in $src.
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
here=$(dirname "$0")

mkfifo "$work/odd.in"
python3 "$here/odd_server.py" <"$work/odd.in" >"$work/odd.out" \
	2>"$work/asked" &
ends_with_test $!
exec 8>"$work/odd.in"
wait_for 10 test -s "$work/odd.out" || fail 'the server does not start'
port=$(cat "$work/odd.out")
python3 -c "import os, sys
sys.path.insert(0, '$here')
sys.dont_write_bytecode = True
import odd_server
for name, data in odd_server.FILES.items():
    with open(os.path.join('$src', name), 'wb') as f:
        f.write(data)"

# habit NAME [OPTION ...]: mount the habit, with nothing cached.
habit() {
	rm -rf "$work/tier"
	mark=$(wc -l <"$work/asked")
	what=$1
	shift
	start_mount "http://127.0.0.1:$port/$what/" "$work/mnt" \
		--cache "$work/tier:20M" --timeout 20 "$@"
	scan_through
}

# asked METHOD NAME: print how often the server got this request since the mount
# began.
asked() {
	tail -n "+$((mark + 1))" "$work/asked" | grep -c "^$1 .*/$2\$"
}

logs() {
	wait_for 10 grep -q "$1" "$daemon_err" || fail "the log lacks: $1"
}

# no_bytes FILE WHY: check that reading the file fails, and that the log has the
# reason WHY.
no_bytes() {
	cat "$mnt/$1" >"$work/got" 2>"$work/said" && fail "$1 was read"
	[ ! -s "$work/got" ] || fail "bytes of $1 were served"
	grep -q 'Input/output error' "$work/said" || fail "$(cat "$work/said")"
	logs "'$1' cannot be used: $2"
}

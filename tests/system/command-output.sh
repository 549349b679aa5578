#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The subcommands that talk to a daemon, against a stand-in for it: what they
# print, how they exit, and that every error is one line that names the thing.
set -eu
refrain=$PWD/refrain
stand_in=$PWD/tests/system/stand_in
# In the build tree: /tmp may be a tmpfs without extended attributes.
work=$(mktemp -d "$PWD/commands.XXXXXX")
pid=
mnt=$work/m
cleanup() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
	! grep -qF " $mnt " /proc/self/mountinfo || umount -l "$mnt" ||
		fusermount3 -uz "$mnt" || :
	rm -rf "$work"
}
trap cleanup EXIT
mkdir -m 700 "$mnt" "$work/run"
XDG_RUNTIME_DIR=$work/run
# The path of a socket is short; this one may not be.
[ ${#XDG_RUNTIME_DIR} -lt 60 ] || unset XDG_RUNTIME_DIR
[ -z "${XDG_RUNTIME_DIR+x}" ] || export XDG_RUNTIME_DIR

fail() {
	echo "$*"
	cat "$work/out" "$work/err" 2>/dev/null
	exit 1
}

# ends STATUS WORD...: run refrain; what it printed is in out and err.
ends() {
	want=$1
	shift
	got=0
	"$refrain" "$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" -eq "$want" ] || fail "refrain $*: exit $got, not $want"
}

# says FILE TEXT: the text is in it.
says() {
	grep -qF -- "$2" "$work/$1" || fail "std$1 does not say '$2'"
}

# An error is one line with our name before it.
one_line() {
	[ "$(wc -l <"$work/err")" -eq 1 ] || fail 'not one line'
	grep -q '^refrain: ' "$work/err" || fail 'no name before it'
}

mkfifo "$work/ready"
"$stand_in" "$mnt" >"$work/ready" 2>"$work/stand_in.err" &
pid=$!
read -r line <"$work/ready" || line=
[ "$line" = ready ] || {
	got=0
	wait "$pid" || got=$?
	pid=
	cat "$work/stand_in.err"
	exit "$got"
}

# Before any mount: usage and help.
ends 0 --help && says out make-dataset
ends 0 --version && says out 'refrain '
ends 2 && says err Usage
ends 2 frobnicate && one_line && says err "'frobnicate'"
ends 2 help frobnicate && one_line
# As mount.fuse has it, for 'mount -o remount MOUNTPOINT': it asks the daemon.
ends 1 /src "$mnt" -o rw,remount && one_line &&
	says err "unknown command 'upgrade'"
for c in $("$refrain" --words); do
	ends 0 help "$c" && says out "Usage: refrain $c"
	ends 0 "$c" --help && says out --help
	ends 2 "$c" --no-such-option && one_line && says err no-such-option
	# Some commands have something to say without an operand.
	case $c in
	doctor | exporter | share | top) ;;
	*) ends 2 "$c" && one_line ;;
	esac
	# Its page is there and its tables are filled in.
	grep -q '^\.SH OPTIONS' "man/refrain-$c.1" || fail "no page of $c"
	! grep '^@' "man/refrain-$c.1" || fail "not filled in"
	"$refrain" --words "$c" | while read -r word _; do
		escaped=$(printf %s "${word#--}" | sed 's/-/\\-/g')
		grep -qF -- "\\-\\-$escaped" "man/refrain-$c.1" ||
			fail "$word is not in the page of $c"
	done
done

# Paths that are not mounts.
for c in status warm refresh verify; do
	ends 1 $c "$work/nowhere" && one_line && says err nowhere
done
ends 1 status "$work" && one_line && says err 'not the root of a refrain'
ends 1 verify "$work" && one_line
ends 1 clear "$work" && one_line
ends 1 umount "$work" && one_line && says err 'nothing is mounted'
ends 1 umount "$work/nowhere" && one_line && says err nowhere
ends 1 umount /proc && one_line && says err 'not a refrain mount'

# Names come from outside: no byte of them that a terminal obeys gets there.
# The only control characters are the newlines at the ends of lines.
printable() {
	[ "$(tr -d '\n' <"$work/$1" | tr -d '[:cntrl:]' | wc -c)" -eq \
		"$(tr -d '\n' <"$work/$1" | wc -c)" ] ||
		fail "std$1 has control characters"
}

# status
ends 0 status "$mnt" && printable out
says out '/src\x1b[31m\nforged on '
says out '/cache/"1"\x1b[1m'
says out 'lost+\x1b[2Jfound'
says out '2 h 5 min'
says out '25 %  1.0 MiB of 4.0 MiB, 10 entries'
says out 'reads ahead 128 KiB'
says out 'scan incomplete'
ends 0 status "$mnt" --json && printable out
[ "$(wc -l <"$work/out")" -eq 1 ] || fail 'the JSON is not one line'
says out '"limits":["the kernel'
ends 0 status --prometheus "$mnt" && printable out
says out '# TYPE refrain_hits_total counter'
says out "refrain_hits_total{mountpoint=\"$mnt\"} "
says out 'refrain_entries{mountpoint='
says out "refrain_ready{mountpoint=\"$mnt\"} 1"
says out "refrain_scan_complete{mountpoint=\"$mnt\"} 0"
says out "refrain_unlisted_directories{mountpoint=\"$mnt\"} 1"
says out '# TYPE refrain_scan_complete gauge'
says out ',dir="/cache/\"1\"\\x1b[1m"} 1048576'
# A name is announced once, and every sample has one.
awk '/^# TYPE/ { if (seen[$3]++) exit 1; next }
	/^#/ { next }
	{ name = $1; sub(/[{].*/, "", name); if (!seen[name]) exit 1 }' \
	"$work/out" || fail 'not the format of Prometheus'
ends 2 status --json --prometheus "$mnt" && one_line
: >"$work/out"
"$refrain" status --watch "$mnt" >"$work/out" 2>"$work/err" &
watch=$!
tries=0
until [ "$(grep -c ' on ' "$work/out")" -ge 2 ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || fail 'watch shows nothing more'
	sleep 0.1
done
kill "$watch"
wait "$watch" 2>/dev/null || :

# warm
ends 0 warm "$mnt"
says out '7 items (2.0 KiB) are cached, 4 of them were already cached'
says out '5 items (1.0 KiB) do not fit'
ends 0 warm "$mnt" --json a b "$mnt/c" && says out '"files":3'
ends 0 warm "$mnt" --json a "$mnt/" && says out '"files":0'
ends 1 warm "$mnt" ./lost && one_line && printable err
says err "1 item could not be fetched: 'lo\\rst': No data available; run"
ends 1 warm "$mnt" "$mnt/lost"
ends 1 warm "$mnt" closed && one_line && printable err && says out '7 items'
says err "could not be listed: 'closed\\n\\x1b[5m': Permission denied; "
ends 0 warm "$mnt" --json "$(printf 'caf\351')" && says out '"files":1'

# refresh, fault
ends 0 refresh "$mnt" a
says out '1 directory: 1 file changed, 2 added, 3 removed'
ends 1 refresh "$mnt" a b c && one_line && printable err
says err "could not be listed: 'c\\x1b[0m': Permission denied"
says err 'the old listing is kept'
ends 0 fault "$mnt" delay=5ms
ends 2 moutn && one_line && says err "'moutn' (did you mean mount?)"
ends 2 status --josn && one_line && says err "(did you mean --json?)"
ends 1 fault "$mnt" nonsense && one_line && says err "'nonsense' is not a fault"

# The daemon is gone.
kill -9 "$pid"
wait "$pid" 2>/dev/null || :
pid=
ends 1 status "$mnt" && one_line && says err 'is dead'
ends 0 umount "$mnt"

# A directory with the attribute of a mount is not the root of a mount: anybody
# can set it, and cp -a copies it.
mkdir "$work/copy"
if python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.refrain.control", sys.argv[2].encode())' \
	"$work/copy" "$work/none" 2>/dev/null; then
	for c in status refresh warm; do
		ends 1 $c "$work/copy" && one_line
		says err 'not the root of a refrain mount'
	done
fi

# Errors and usage repeat what was typed.
esc=$(printf 'a\033[31m\nb')
ends 2 "$esc" && one_line && printable err && says err 'a\x1b[31m\nb'
ends 1 status "$work/$esc" && one_line && printable err
ends 2 status "--$esc" && one_line && printable err
ends 1 clear "$work/$esc" && one_line && printable err
mkdir "$work/$esc"
ends 1 verify "$work/$esc" && one_line && printable err
ends 1 index "$work/$esc/none" && one_line && printable err

# A table for a program has the names as they are; on a terminal they are shown.
mkdir "$work/names"
: >"$work/names/$(printf 'a\033[31mb')"
ends 0 index "$work/names" && says out "$(printf 'a\033[31mb\t0')"
python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
	"$refrain" index "$work/names" >"$work/out" 2>"$work/err" </dev/null ||
	fail 'no index on a terminal'
says out 'a\x1b[31mb'
! grep -qF "$(printf '\033[31mb')" "$work/out" || fail 'an index is not escaped'

# Output that cannot be written is a failure.
if [ -w /dev/full ]; then
	if "$refrain" --help >/dev/full 2>"$work/err"; then
		fail 'a full device was no failure'
	fi
	one_line
fi

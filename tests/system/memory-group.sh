#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon in a memory control group. With the default options the kernel kills
# nothing in groups of 128 MiB to 1 GiB: the default of --staging follows the
# group, reads over several items have a bound, and entries do not pile up as
# dirty pages. Options that may need more are named in the log and the status.
set -u
name=memory-limit
. "${srcdir:-.}/tests/system/lib.sh"
. "${srcdir:-.}/tests/system/group-lib.sh"
requires root fuse python3

here=$(cd "${srcdir:-.}/tests/system" && pwd)

# begin_in DIR SOURCE OPTION ...: start a mount whose daemon is in that group
# from the start.
begin_in() {
	daemons=$((daemons + 1))
	daemon_err=$work/daemon.$daemons.err
	in=$1
	shift
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$in" \
		"$refrain" mount --foreground "$@" 2>"$daemon_err" &
	daemon=$!
	wait_for 20 mount_answers || fail "no mount after 20 s: $*"
	daemon_gone && fail "the daemon did not start: $*"
	return 0
}

# start_in DIR OPTION ...: the same for $data, and wait until it is listed.
start_in() {
	below=$1
	shift
	begin_in "$below" "$data" "$mnt" "$@"
	scan_through
}

staging_mib() {
	expect "staging in $1" "$(status_field staging_capacity_bytes)" \
		$(($2 * MIB))
}

survived() {
	! daemon_gone || fail "$1: the daemon was killed"
	expect "kills in $1" "$(group_kills)" 0
	! "$refrain" status "$mnt" | grep -q 'memory control group' ||
		fail "$1: it is said not to fit"
	note "$1: staging peak $(status_field staging_peak_bytes)," \
		"rss $(status_field memory_rss_bytes)"
}

# epochs WHAT READERS: read all files in two epochs.
epochs() {
	"$reader" --threads "$2" --epochs 2 "$mnt" >"$work/read" 2>&1 || {
		cat "$work/read"
		survived "$1"
		fail "$1: reads failed"
	}
	survived "$1"
}

# planned WHAT READERS: read an epoch with a plan.
planned() {
	(cd "$data" && find . -type f -printf '%P\n') >"$work/order"
	"$refrain" plan "$mnt" --epoch 1 --batch 8 <"$work/order" \
		>"$work/planned" 2>&1 &
	planning=$!
	wait_for 20 has_status plans 1 || fail "$(cat "$work/planned")"
	python3 "$here/trainer.py" "$mnt" "$work/order" --threads "$2" \
		--batch "$2" >"$work/trained" 2>&1 || {
		cat "$work/trained"
		survived "$1"
		fail "$1: the trainer failed"
	}
	wait $planning || fail "the plan: $(cat "$work/planned")"
	survived "$1"
}

# -- Data: files larger than --limit and below it, and many small ones --------

make_files() {
	mkdir -p "$1"
	for i in $(seq "$2"); do
		truncate -s "$3" "$1/$3.$i"
	done
}
make_files "$src/large" 14 20000000
make_files "$src/large" 10 12000000
make_files "$src/small" 1000 110000

{ find_controller && make_group 128; } ||
	skip 'no memory control group of our own'

# -- 128 MiB ------------------------------------------------------------------

data=$src/large
start_in "$group" --cache "$work/tier:2G"
staging_mib '128 MiB' 64
epochs '128 MiB, large files' 64
stop_mount
rm -rf "$work/tier"
start_in "$group" --cache "$work/tier:2G"
planned '128 MiB, large files, planned' 16
stop_mount
rm -rf "$work/tier"
data=$src/small
start_in "$group" --cache "$work/tier:60M"
epochs '128 MiB, small files' 16
stop_mount
rm -rf "$work/tier"

# Options that may need more memory.
start_in "$group" --cache "$work/tier:2G" --staging 96M
says='the memory control group allows 128.0 MiB, but the mount may need 168'
"$refrain" status "$mnt" | grep -q "$says" || fail 'status does not say it'
grep -q "refrain: warning: $says" "$daemon_err" || fail 'the log does not'
stop_mount
rm -rf "$work/tier"
end_group

# -- A server that lists without an end: names may take a quarter of the group

if [ -x tests/system/far ]; then
	make_group 128 || fail 'no group'
	mkfifo "$work/odd.in"
	python3 "$here/odd_server.py" <"$work/odd.in" >"$work/odd.out" \
		2>/dev/null &
	ends_with_test $!
	exec 8>"$work/odd.in"
	wait_for 10 test -s "$work/odd.out" || fail 'the server does not start'
	begin_in "$group" s3://endless-keys "$mnt" --cache "$work/tier:2G" \
		--no-sign-request \
		--endpoint-url "http://127.0.0.1:$(cat "$work/odd.out")"
	says='names than fit in their share of memory, 32.0 MiB; mount a prefix'
	wait_for 60 grep -q "$says" "$daemon_err" ||
		fail 'a listing without an end goes on, or nobody says why'
	! daemon_gone || fail 'an endless listing: the daemon was killed'
	expect 'kills by an endless listing' "$(group_kills)" 0
	"$refrain" status "$mnt" | grep -q "$says" || fail 'status lacks it'
	stop_mount
	rm -rf "$work/tier"
	end_group
fi

# -- A group without a limit below one with a limit ---------------------------

make_group 256 || fail 'no group'
[ ! -e "$group/cgroup.subtree_control" ] ||
	echo +memory >"$group/cgroup.subtree_control"
mkdir "$group/inner"
group_ends_with_test "$group/inner"
data=$src/large
start_in "$group/inner" --cache "$work/tier:2G"
staging_mib 'a group below 256 MiB' 116
epochs '256 MiB, large files' 8
stop_mount
wait_for 20 rmdir "$group/inner" || fail 'the inner group stays'
end_group

# -- Tiers in memory ----------------------------------------------------------

df --output=fstype "$short" | grep -q tmpfs || {
	note 'no tmpfs'
	exit 0
}
# 128 MiB have no room for a tier and four files of 16M: --limit is lower.
make_group 128 || fail 'no group'
for data in "$src/large" "$src/small"; do
	start_in "$group" --cache "$short/tier:24M"
	staging_mib '128 MiB beside a tier of 24M' 40
	epochs "128 MiB, tier in memory, ${data##*/} files" 32
	stop_mount
	rm -rf "$short/tier"
done
end_group
data=$src/large
make_group 256 || fail 'no group'
start_in "$group" --cache "$short/tier:64M"
staging_mib '256 MiB beside a tier of 64M' 84
epochs '256 MiB, tier in memory, large files' 32
stop_mount
rm -rf "$short/tier"
end_group
make_group 1024 || fail 'no group'
start_in "$group" --cache "$short/tier:300M"
staging_mib '1 GiB' 256
epochs '1 GiB, tier in memory, large files' 64
stop_mount
end_group

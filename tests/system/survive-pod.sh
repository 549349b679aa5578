#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The structure of a Pod: the holder, the daemon and a reader are in containers
# of their own; the holder's socket and the mount are in directories that they
# share. The daemon's container is killed for its memory, and killed, and
# started again; the readers see no error. If the container is not started
# again, readers get an error in time.
#
# REFRAIN_KILLS is the number of times that memory runs out (10).
set -eu
name=survive-pod
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/container-lib.sh
. "${srcdir:-.}/tests/system/container-lib.sh"

recover_s=20
data=$work/data
make_tree "$data" 3 120 400000
head -c 5000000 /dev/urandom >"$data/shard"
mkdir "$data/many" "$work/hold" "$work/cache" "$work/shared"
(cd "$data/many" && seq -f 'n%05.0f' 3000 | xargs touch)
bytes=$(tree_bytes "$data")
mkdir "$work/shared/data" "$root/hold" "$root/shared" "$root/cache"
{ mount --bind "$work/shared" "$work/shared" &&
	mount --make-rshared "$work/shared"; } || skip 'cannot share a mount'

# container NAME OPTION ... -- COMMAND ...: run it in the background.
container() {
	box=$1
	shift
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # a list of words
	pod run --detach --name "$box" --network=none \
		--security-opt apparmor=unconfined --volume "$data:/srv:ro" \
		--volume "$work/hold:/hold" $options \
		--rootfs "$root" "$@" >"$work/said" 2>&1
}

logs() {
	for box in holder daemon reader; do
		echo "-- $box"
		pod logs "$box" 2>&1 | tail -n 15
	done
	fail "$*"
}

holder_listens() {
	[ -S "$work/hold/socket" ]
}

field() {
	pod exec daemon /usr/local/bin/status_field /shared/data "$1" \
		2>/dev/null
}

recovered() {
	[ "$(field recoveries)" = "$1" ]
}

running() {
	[ "$(pod inspect --format '{{.State.Running}}' "$1")" = "$2" ]
}

# start_daemon: start the daemon in its container, with a file system in memory
# that the test can fill.
start_daemon() {
	# shellcheck disable=SC2086 # words
	container daemon --device=/dev/fuse --cap-add=SYS_ADMIN \
		--memory=128m --shm-size=512m --restart="$1" \
		--volume="$work/cache:/cache" \
		--volume="$work/shared:/shared:rshared" -- \
		"$bin/refrain" hold --join /hold/socket -- \
		"$bin/refrain" mount --foreground /srv /shared/data \
		--cache "/cache/data:$((bytes / 2))" --limit 128K --chunk 64K \
		--staging 512K
}

container holder --memory=16m -- "$bin/refrain" hold --socket /hold/socket \
	--recover-timeout $recover_s ||
	skip "podman runs no container: $(tail -n 1 "$work/said")"
wait_for 20 holder_listens || logs 'the holder does not listen'
expect 'the mode of its socket' "$(stat -c %a "$work/hold/socket")" 600
start_daemon always || logs "no daemon: $(cat "$work/said")"
wait_for 30 recovered 0 || logs 'no mount'
expect held "$(field held)" yes

# Another daemon cannot join while this one lives.
! pod exec daemon "$bin/refrain" hold --join /hold/socket -- /bin/true \
	2>"$work/err" || logs 'two daemons were let in'
grep -q 'another daemon serves' "$work/err" || logs "$(cat "$work/err")"

# -- Readers -----------------------------------------------------------------

readers_begun() {
	[ -e "$work/hold/stop.begun" ] || running reader false
}

container reader --volume="$work/shared:/shared:rslave" -- \
	/usr/bin/python3 /usr/local/bin/survive.py "$bin/refrain" \
	/shared/data /srv 0 1 /hold/stop ||
	logs "no reader: $(cat "$work/said")"
wait_for 60 readers_begun || logs 'the readers do not begin'

# The kernel kills the process with the most memory, which is the daemon.
wanted=0
while [ $wanted -lt "${REFRAIN_KILLS:-10}" ]; do
	wanted=$((wanted + 1))
	! pod exec daemon /bin/dd if=/dev/zero of=/dev/shm/fill bs=1M \
		count=400 >"$work/dd" 2>&1 || logs 'memory does not run out'
	wait_for 60 recovered $wanted ||
		logs "recoveries: $(field recoveries), not $wanted"
done
# An upgrade does not end the link, and a kill after it has the same effect as
# before.
pod exec daemon "$bin/refrain" upgrade /shared/data || logs 'no upgrade'
kill -9 "$(pod inspect --format '{{.State.Pid}}' daemon)"
wait_for 60 recovered $((wanted + 2)) ||
	logs "recoveries after a kill: $(field recoveries)"
expect held "$(field held)" yes
touch "$work/hold/stop"
wait_for 60 running reader false || logs 'the readers do not end'
[ "$(pod inspect --format '{{.State.ExitCode}}' reader)" = 0 ] ||
	logs 'readers'
pod logs daemon 2>&1 | grep -q 'went on with the mount' || logs 'the log'

# -- No daemon any more ------------------------------------------------------

pod rm reader >/dev/null
container reader --volume="$work/shared:/shared:rslave" -- /bin/sh -c '
	exec 9</shared/data/shard && touch /hold/opened &&
	until [ -e /hold/killed ]; do sleep 0.1; done &&
	exec timeout 60 dd iflag=direct bs=64k of=/dev/null <&9'
wait_for 20 test -e "$work/hold/opened" || logs 'cannot open a file'
begun=$(date +%s)
pod rm --force --time 0 daemon >/dev/null
touch "$work/hold/killed"
wait_for 60 running reader false || logs 'a reader hangs'
took=$(($(date +%s) - begun))
if [ $took -lt $((recover_s - 1)) ] || [ $took -gt $((recover_s + 10)) ]; then
	logs "readers waited $took s, not $recover_s"
fi
note "without a daemon readers waited $took s"
pod logs holder 2>&1 | grep -q 'gave up: no daemon served' || logs 'the holder'

# The same holder holds the next mount; SIGTERM ends it.
start_daemon no || logs "no second daemon: $(cat "$work/said")"
wait_for 30 recovered 0 || logs 'no second mount'
expect 'held again' "$(field held)" yes
cmp "$data/shard" "$work/shared/data/shard" || logs 'wrong bytes'
pod stop --time 30 daemon >/dev/null
expect 'status of the daemon' \
	"$(pod inspect --format '{{.State.ExitCode}}' daemon)" 0
! mounts_below "$work/shared" | grep -q '/data$' || logs 'a mount is left'
running holder true || logs 'the holder has ended'
pod stop --time 10 holder >/dev/null
expect 'status of the holder' \
	"$(pod inspect --format '{{.State.ExitCode}}' holder)" 0

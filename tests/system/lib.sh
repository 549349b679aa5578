# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# Shared by the system tests. A test sets `name`, sources this file, and calls
# `requires`. Tests run in the build folder. A test has one mount at a time.
#
# Makes $work, a directory on a disk, in which $src and $mnt are directories for
# the source and the mount. The test may use the rest of $work. When the test
# ends in any way, all processes that it has started are ended, everything below
# $work is unmounted, and $work is removed.

# Run the test in a mount namespace of its own, if possible: otherwise another
# test could get a copy of this test's mount, which would keep the daemon alive
# after the unmount. Also drop the copies that this namespace has of other
# mounts.
if [ -z "${REFRAIN_TEST_NAMESPACE:-}" ] && unshare -m true 2>/dev/null; then
	REFRAIN_TEST_NAMESPACE=1 exec unshare -m sh "$0" "$@"
fi
if [ -n "${REFRAIN_TEST_NAMESPACE:-}" ]; then
	awk '/ - fuse.refrain / { print $5 }' /proc/self/mountinfo |
		while read -r m; do
			umount -l "$m" 2>/dev/null || :
		done
fi

refrain=$PWD/refrain
reader=$PWD/bench/epoch-reader
helpers=$PWD/tests/system
work=$(mktemp -d "$PWD/$name.XXXXXX") || exit 1
src=$work/src
mnt=$work/mnt
daemon=
daemons=0
servers=
groups=
# Valgrind and sanitizers make everything slower.
patience=${CK_TIMEOUT_MULTIPLIER:-1}
mkdir "$src" "$mnt"
# Tests that run at the same time must have their sockets in different
# directories. The path of a socket must be short, and that of a build folder
# may be long. The directory is in memory if possible, because some tests make a
# hundred files in it.
short=$(mktemp -d /dev/shm/refrain.XXXXXX 2>/dev/null ||
	mktemp -d /tmp/refrain.XXXXXX) || exit 1
XDG_RUNTIME_DIR=$short/run
# This variable identifies the processes of the test.
REFRAIN_TEST_WORK=$work
export XDG_RUNTIME_DIR REFRAIN_TEST_WORK
mkdir -m 700 "$XDG_RUNTIME_DIR"

# mounts_below DIR: print the mountpoints below DIR, the innermost first.
mounts_below() {
	awk -v top="$1/" 'index($5 "/", top) == 1 { print $5 }' \
		/proc/self/mountinfo | sort -r
}

# ends_with_test PID: kill this server of the test at the end of the test. A
# trap of the test itself would lose the exit status.
ends_with_test() {
	servers="$servers $1"
}

# group_ends_with_test DIR: remove this control group at the end of the test.
# Call this for inner groups first.
group_ends_with_test() {
	groups="$1 $groups"
}

# Kill all processes that the test has started, even stopped ones.
kill_all() {
	grep -lsxz "REFRAIN_TEST_WORK=$work" /proc/[0-9]*/environ |
		while IFS=/ read -r _ _ p _; do
			kill -9 "$p" 2>/dev/null || :
		done
}

cleanup() {
	status=$?
	trap - EXIT
	cd / || :
	! command -v before_cleanup >/dev/null || before_cleanup
	for p in $servers; do
		kill "$p" 2>/dev/null || :
	done
	if [ -n "$daemon" ]; then
		kill -9 "$daemon" 2>/dev/null || :
		wait "$daemon" 2>/dev/null || :
	fi
	kill_all
	mounts_below "$work" | while read -r m; do
		umount -f -l "$m" 2>/dev/null || fusermount3 -uz "$m" || :
	done
	for g in $groups; do
		[ ! -d "$g" ] || wait_for 5 rmdir "$g" || :
	done
	[ -n "${KEEP:-}" ] || rm -rf "$work" "$short"
	exit $status
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

skip() {
	echo "skipped: $*"
	exit 77
}

# Print the failure and the output of the daemons, and end the test.
fail() {
	echo "FAILED: $*"
	for f in "$work"/daemon.*.err; do
		[ ! -s "$f" ] || { echo "-- $f"; tail -n 40 "$f"; }
	done
	exit 1
}

note() {
	echo "$name: $*"
}

# requires WHAT ...: skip the test if this machine lacks something. WHAT is
# `root`, `fuse`, `drop_caches`, or the name of a program.
requires() {
	for what; do
		case $what in
		root) [ "$(id -u)" -eq 0 ] || skip 'needs root' ;;
		fuse) [ -w /dev/fuse ] || skip 'cannot open /dev/fuse' ;;
		drop_caches) [ -w /proc/sys/vm/drop_caches ] ||
			skip 'cannot write /proc/sys/vm/drop_caches' ;;
		*) command -v "$what" >/dev/null || skip "needs $what" ;;
		esac
	done
}

# wait_for SECONDS COMMAND ...: run the command again and again until it
# succeeds. Returns false after SECONDS.
wait_for() {
	waits_left=$(($1 * 20 * patience))
	shift
	until "$@"; do
		waits_left=$((waits_left - 1))
		[ $waits_left -gt 0 ] || return 1
		sleep 0.05
	done
}

# -- Mounts ------------------------------------------------------------------

# status_field NAME [MOUNTPOINT]: print a member of `refrain status --json`, but
# not one of its tiers.
status_field() {
	"$helpers/status_field" "${2:-$mnt}" "$1" || :
}

has_status() {
	[ "$(status_field "$1" 2>/dev/null)" = "$2" ]
}

daemon_gone() {
	! kill -0 "$daemon" 2>/dev/null
}

# has_ended PID: has the process ended? A zombie has ended, too.
has_ended() {
	! grep -q '^State:[[:space:]]*[A-WYa-y]' "/proc/$1/status" 2>/dev/null
}

all_stopped() {
	! cat "/proc/$1"/task/*/status | grep '^State:' | grep -qv 'T (stop'
}

# stop_process PID: send SIGSTOP, and wait until none of its threads runs any
# more, because until then they still answer.
stop_process() {
	kill -STOP "$1"
	wait_for 10 all_stopped "$1" || fail "process $1 does not stop"
}

mount_answers() {
	daemon_gone || has_status ready true
}

# start_mount SOURCE MOUNTPOINT OPTION ...: start a daemon with --foreground as
# a background job. $daemon is its process, and "$daemon_err" the file with its
# messages. Returns when the mount answers and admits items.
start_mount() {
	mnt=$2
	daemons=$((daemons + 1))
	daemon_err=$work/daemon.$daemons.err
	"$refrain" mount --foreground "$@" 2>"$daemon_err" &
	daemon=$!
	wait_for 20 mount_answers || fail "no mount after 20 s: $*"
	daemon_gone && fail "the daemon did not start: $*"
	return 0
}

# scan_through: wait until the whole source has been listed, and old versions
# have been swept.
scan_through() {
	wait_for 20 has_status scan complete || fail 'the scan does not end'
}

# daemon_ended: check that the daemon has ended with status 0; print its
# messages if it has not.
daemon_ended() {
	wait_for 20 daemon_gone || fail 'the daemon does not end'
	ended=0
	wait "$daemon" || ended=$?
	daemon=
	[ $ended -eq 0 ] || fail "the daemon ended with $ended"
}

stop_mount() {
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	daemon_ended
}

# kill_mount: kill the daemon with SIGKILL. The mount stays, but is dead.
kill_mount() {
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || :
	daemon=
}

# drop_caches: make the kernel drop the names, inodes and pages of the mount,
# except those of open files. A remount does that, and does not affect other
# mounts, so tests that count the effect can run side by side.
drop_caches() {
	mount -i -o remount,ro "$mnt" || fail "cannot remount '$mnt'"
}

# drop_all_caches: make the kernel drop the pages of all files, even of the
# source and the tiers. Nothing is written back first, because a read-only mount
# has no dirty pages.
drop_all_caches() {
	echo 3 >/proc/sys/vm/drop_caches
}

# drops: print how often the kernel has dropped caches since the machine
# started. A test that counts requests in an epoch checks that no other program
# has dropped caches during it. Dropping an inode also drops its pages.
drops() {
	awk '/^drop_(pagecache|slab) / { n += $2 } END { print n }' /proc/vmstat
}

# -- Servers -----------------------------------------------------------------

# free_port: print a port of 127.0.0.1 at which nothing listens. The port is
# below those that the kernel gives to connections, because a connection could
# take one of those first.
free_port() {
	python3 -c 'import random, socket
while True:
    port = random.randrange(10000, 32000)
    try:
        socket.socket().bind(("127.0.0.1", port))
    except OSError:
        continue
    print(port)
    break'
}

# -- Data --------------------------------------------------------------------

# make_tree DIR SEED FILES MAX_BYTES: make files of 0 to MAX_BYTES random bytes,
# with sizes of every order of magnitude, in a few directories. The same seed
# makes the same files. Write their sums to DIR.sums, as sha256sum prints them.
make_tree() {
	python3 - "$@" <<'END' || fail "cannot make $1"
import hashlib, math, os, random, sys

top, seed, files, most = sys.argv[1], *map(int, sys.argv[2:])
rng = random.Random(seed)
edges = [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 1 << 20]
with open(top + '.sums', 'w') as sums:
    for i in range(files):
        if i < 2 * len(edges):
            size = min(edges[i // 2], most)
        else:
            size = int(math.exp(rng.uniform(0, math.log(most + 1))))
        path = 'd%d/e%d/f%05d' % (i % 7, i % 3, i)
        os.makedirs(os.path.dirname(os.path.join(top, path)),
                    exist_ok=True)
        data = rng.randbytes(size)
        with open(os.path.join(top, path), 'wb') as f:
            f.write(data)
        sums.write('%s  %s\n' % (hashlib.sha256(data).hexdigest(), path))
END
}

# make_deep DIR: make a path below DIR that is too long to be listed, but can be
# opened: 17 nested directories with names of 251 bytes.
make_deep() (
	cd "$1" && mkdir deep && cd deep
	long=$(printf 'n%0250d' 0)
	i=0
	while [ $i -lt 17 ]; do
		mkdir "$long" && cd -P "$long" || exit
		i=$((i + 1))
	done
)

# tree_bytes DIR: print the number of bytes of its regular files.
tree_bytes() {
	find "$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

# sums_right SUMS DIR: check that every file in DIR has the sum of the list.
sums_right() {
	(cd "$2" && sha256sum --quiet --strict -c "$1") ||
		fail "wrong bytes in $2"
}

# expect WHAT GOT WANT: fail unless GOT is WANT; WHAT describes the value.
expect() {
	[ "$2" = "$3" ] || fail "$1: $2, not $3"
}

if [ ! -x "$refrain" ] || [ ! -x "$reader" ] ||
	[ ! -x "$helpers/status_field" ]; then
	fail "run me by 'make check' in the build folder"
fi

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# Shared by the system tests. A test sets `name`, sources this, says what it
# `requires` and goes on; it runs in the build folder. One mount at a time.
#
# Makes $work, a directory on a disk: $src and $mnt are two in it, for the
# source and the mount; the rest is the test's. At the end, however it comes,
# all that the test started is gone, nothing is mounted below $work, and $work
# is removed.

# In a mount namespace of its own, if it may have one: another test's copy of
# our mount would keep the daemon alive after we have unmounted it. Nor are the
# copies that we got of others to be kept.
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
# Sockets of tests that run at the same time stay apart. The path of a socket
# is short, that of a build folder need not be; and in memory, if there is any
# for files, what a test makes a hundred times costs little.
short=$(mktemp -d /dev/shm/refrain.XXXXXX 2>/dev/null ||
	mktemp -d /tmp/refrain.XXXXXX) || exit 1
XDG_RUNTIME_DIR=$short/run
# By this a process is known to be the test's.
REFRAIN_TEST_WORK=$work
export XDG_RUNTIME_DIR REFRAIN_TEST_WORK
mkdir -m 700 "$XDG_RUNTIME_DIR"

# mounts_below DIR: the mountpoints there, the innermost first.
mounts_below() {
	awk -v top="$1/" 'index($5 "/", top) == 1 { print $5 }' \
		/proc/self/mountinfo | sort -r
}

# ends_with_test PID: a server of the test, which is killed at its end. A trap
# of the test's own would lose the status that it ends with.
ends_with_test() {
	servers="$servers $1"
}

# group_ends_with_test DIR: a control group of the test, innermost first.
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

# requires WHAT ...: skip where this machine cannot. `root`, `fuse`,
# `drop_caches`, or the name of a program.
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

# wait_for SECONDS COMMAND ...: until it succeeds; false after that long.
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

# status_field NAME [MOUNTPOINT]: a member of `refrain status --json` itself,
# not of one of its tiers.
status_field() {
	"$helpers/status_field" "${2:-$mnt}" "$1" || :
}

has_status() {
	[ "$(status_field "$1" 2>/dev/null)" = "$2" ]
}

daemon_gone() {
	! kill -0 "$daemon" 2>/dev/null
}

# has_ended PID: also if nobody has waited for it yet.
has_ended() {
	! grep -q '^State:[[:space:]]*[A-WYa-y]' "/proc/$1/status" 2>/dev/null
}

all_stopped() {
	! cat "/proc/$1"/task/*/status | grep '^State:' | grep -qv 'T (stop'
}

# stop_process PID: SIGSTOP. Returns when none of its threads runs any more:
# until then they still answer.
stop_process() {
	kill -STOP "$1"
	wait_for 10 all_stopped "$1" || fail "process $1 does not stop"
}

mount_answers() {
	daemon_gone || has_status ready true
}

# start_mount SOURCE MOUNTPOINT OPTION ...: a daemon in the foreground, in the
# background; $daemon is its process, "$daemon_err" what it says. Returns when
# the mount answers and admission is open.
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

# The whole source has been listed, and old versions have been swept.
scan_through() {
	wait_for 20 has_status scan complete || fail 'the scan does not end'
}

# The daemon has ended: with status 0, or it says why.
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

# kill -9: the mount stays, dead.
kill_mount() {
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null || :
	daemon=
}

# The kernel forgets what it has of the mount: names, inodes, and with these
# their pages; but for files that are open. A remount does that, and to nobody
# else's files: tests that count what comes of it can run side by side.
drop_caches() {
	mount -i -o remount,ro "$mnt" || fail "cannot remount '$mnt'"
}

# The kernel forgets what it has of all files, of the source and the tiers, too.
# Nothing is written back first: a read-only mount has no dirty pages.
drop_all_caches() {
	echo 3 >/proc/sys/vm/drop_caches
}

# How often the caches were dropped since the machine started: whoever counts
# what an epoch costs looks whether somebody else did that in the middle of it.
# With an inode its pages go.
drops() {
	awk '/^drop_(pagecache|slab) / { n += $2 } END { print n }' /proc/vmstat
}

# -- Servers -----------------------------------------------------------------

# free_port: a port of 127.0.0.1 at which nothing listens. It is below those
# that the kernel gives to connections, one of which could have it first.
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

# make_tree DIR SEED FILES MAX_BYTES: files of 0 to MAX_BYTES random bytes, of
# every order of magnitude, in a few directories: the same for the same seed.
# Their SHA-256, as sha256sum prints them, go to DIR.sums.
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

# make_deep DIR: a path below it that is too long to be listed, but not to be
# named: 17 directories, one in the other, of 251 bytes each.
make_deep() (
	cd "$1" && mkdir deep && cd deep
	long=$(printf 'n%0250d' 0)
	i=0
	while [ $i -lt 17 ]; do
		mkdir "$long" && cd -P "$long" || exit
		i=$((i + 1))
	done
)

# tree_bytes DIR: of its regular files.
tree_bytes() {
	find "$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

# sums_right SUMS DIR: every file there has the sum of the list.
sums_right() {
	(cd "$2" && sha256sum --quiet --strict -c "$1") ||
		fail "wrong bytes in $2"
}

# expect WHAT GOT WANT
expect() {
	[ "$2" = "$3" ] || fail "$1: $2, not $3"
}

if [ ! -x "$refrain" ] || [ ! -x "$reader" ] ||
	[ ! -x "$helpers/status_field" ]; then
	fail "run me by 'make check' in the build folder"
fi

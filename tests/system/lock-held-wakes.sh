#!/bin/sh
# SPDX-License-Identifier: MIT
#
# No wake-up is written while a lock is held. Checked with mounts of a directory
# and of a web server, reads that time out, a mount that ends while it reads, a
# loader, and two jobs that share their batches. A loader that is closed does
# not close a file or shut a socket down while it holds a lock, either.
set -eu
name=held-wakes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse nm python3
PATH=$PATH:/usr/sbin

shim=$PWD/tests/system/.libs/held_wakes.so
[ -e "$shim" ] || skip "$shim is not built"
case $(nm -D "$refrain" 2>/dev/null) in
*__asan* | *__tsan*) skip 'a sanitizer has locks of its own' ;;
esac

HELD_WAKES=$work/held
export HELD_WAKES

under_test() {
	LD_PRELOAD=$shim "$@"
}

nothing_held() {
	[ ! -s "$HELD_WAKES" ] ||
		fail "$1: $(sort "$HELD_WAKES" | uniq -c | sort -rn | head -20)"
}

# Check that the library finds a wake-up under a lock.
cat >"$work/bad.py" <<'PY'
import ctypes, os
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)
until = (ctypes.c_long * 2)(1 << 40, 0)
fd = libc.eventfd(0, 0)
one = ctypes.c_uint64(1)
libc.write(fd, ctypes.byref(one), 8)
assert not os.path.exists(os.environ["HELD_WAKES"]), "found one without"
libc.pthread_mutex_timedlock(mutex, ctypes.byref(until))
libc.pthread_mutex_unlock(mutex)
libc.pthread_mutex_lock(mutex)
libc.write(fd, ctypes.byref(one), 8)
libc.pthread_mutex_unlock(mutex)
PY
under_test python3 "$work/bad.py" || fail 'see above'
[ -s "$HELD_WAKES" ] || fail 'a wake-up under a lock was not found'
rm "$HELD_WAKES"

mount_and_read() {
	under_test "$refrain" mount "$@" "$mnt" --cache "$work/tier:100M"
	find "$mnt" -type f -print0 | xargs -0 -P 4 -n 8 cat >/dev/null
	find "$mnt" -type f -print0 | xargs -0 -P 4 -n 8 cat >/dev/null
	"$refrain" umount "$mnt"
	rm -rf "$work/tier"
	nothing_held "mount $*"
}

make_tree "$src" 5 40 100000
mount_and_read "$src"
mount_and_read "$src" --fault pieces=8K
mount_and_read "$src" --fault delay=1ms,meta=1

# Requests that stall begin when the faults end.
under_test "$refrain" mount "$src" "$mnt" --cache "$work/tier:100M" \
	--fault stall=1
find "$mnt" -type f | head -n 8 | xargs -P 8 -n 1 cat >/dev/null &
reads=$!
wait_for 20 has_status inflight 8 || fail 'no reads stall'
"$refrain" fault "$mnt" ''
wait "$reads" || fail 'reads that stalled failed'
"$refrain" umount "$mnt"
rm -rf "$work/tier"
nothing_held 'faults that end'

# Reads of files hang, but the directory above them does not. So the origin has
# its ring, and gives the reads up when their time is over, or when the mount
# ends.
hung=$src/hung
mkdir "$hung" "$work/slow"
seq 10000 >"$work/slow/stalls"
seq 10000 >"$work/slow/opens-never"
"$refrain" mount "$work/slow" "$hung" --cache "$work/slow-tier:100M" \
	--fault stall=1
hung_pid=$(status_field pid "$hung")

mount_hung() {
	under_test "$refrain" mount "$src" "$mnt" --cache "$work/tier:100M" "$@"
	ls "$mnt/hung" >/dev/null
}

pid_gone() {
	! kill -0 "$pid" 2>/dev/null
}

hung_ended() {
	wait_for 20 pid_gone || fail "the mount does not end: $1"
	rm -rf "$work/tier"
	nothing_held "$1"
}

mount_hung --timeout 1
pid=$(status_field pid)
! cat "$mnt/hung/stalls" 2>/dev/null || fail 'a hung read was answered'
stop_process "$hung_pid"
! cat "$mnt/hung/opens-never" 2>/dev/null || fail 'a hung open was answered'
kill -CONT "$hung_pid"
"$refrain" umount "$mnt"
hung_ended 'reads that time out'

mount_hung --timeout 1 --fault pieces=8K
pid=$(status_field pid)
! cat "$mnt/hung/stalls" 2>/dev/null || fail 'a hung read was answered'
"$refrain" umount "$mnt"
hung_ended 'reads behind a fault origin that time out'

mount_hung --timeout 600
pid=$(status_field pid)
for file in stalls opens-never; do
	cat "$mnt/hung/$file" >/dev/null 2>&1 &
done
wait_for 20 has_status inflight 2 || fail 'nothing is read'
kill "$pid"
hung_ended 'an end while reads hang'
umount -l "$hung"
rmdir "$hung"

if command -v nginx >/dev/null && [ -x tests/system/far ]; then
	port=$(free_port)
	cat >"$work/nginx.conf" <<END
daemon off;
user root;
error_log $work/nginx.err;
pid $work/nginx.pid;
events {}
http {
	access_log off;
	server {
		listen 127.0.0.1:$port;
		location / {
			root $src;
			autoindex on;
			autoindex_format json;
		}
	}
}
END
	nginx -c "$work/nginx.conf" 2>>"$work/nginx.err" &
	ends_with_test $!
	wait_for 10 curl -fsS -o "$work/names" "http://127.0.0.1:$port/" \
		2>/dev/null || fail 'no web server'
	mount_and_read "http://127.0.0.1:$port/"
fi

if [ -x tests/system/far ]; then
	# A listing that is split
	far_start files=2500 size=10
	mount_and_read s3://many --endpoint-url "$far"
fi

data=$work/data
"$refrain" make-dataset --classes 2 --images 200 --size 96x72 "$data" \
	>/dev/null
under_test "$refrain" load "$data" --batch 16 --size 32 --epochs 3 --echo 2 \
	>/dev/null
nothing_held load

# A loader closes files only without a lock.
HELD_CLOSES=1
export HELD_CLOSES
under_test "$refrain" load "$data" --batch 16 --size 32 --steps 2 >/dev/null
nothing_held 'load --steps'

# Some files hang, so the loader is closed while it reads.
class=$(find "$data" -mindepth 1 -type d | sort | tail -n 1)
mv "$class" "$work/slow-class"
mkdir "$class"
"$refrain" mount "$work/slow-class" "$class" --cache "$work/class-tier:100M" \
	--fault stall=1
! under_test "$refrain" load "$data" --batch 16 --size 32 --timeout 2 \
	>/dev/null 2>&1 || fail 'a loader ended although its reads hang'
nothing_held 'load of files that hang'
umount -l "$class"

# A mount that stops answering before its loader is closed
"$refrain" mount "$data" "$mnt" --cache "$work/tier:100M"
pid=$(status_field pid)
under_test "$refrain" load "$mnt" --batch 16 --size 32 --steps 60 \
	--epochs 60 --step-ms 50 --timeout 2 >/dev/null 2>&1 &
load=$!
files=$(find "$data" -type f -name '*.jpg' | wc -l)
wait_for 20 has_status entries "$files" || fail 'the loader does not read all'
stop_process "$pid"
wait "$load" || :
kill -CONT "$pid"
"$refrain" umount "$mnt"
nothing_held 'load of a mount that hangs'
unset HELD_CLOSES

XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
for job in 1 2; do
	under_test "$refrain" load "$data" --batch 16 --size 32 --epochs 3 \
		--share held-wakes --share-jobs 2 >"$work/job.$job" 2>&1 &
	jobs="${jobs:-} $!"
done
for job in $jobs; do
	wait "$job" || fail "a job failed: $(cat "$work"/job.*)"
done
nothing_held 'load --share'

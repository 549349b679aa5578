#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Unmodified jobs that read the same order through one mount with plans: a file
# that is not cached is fetched once for all of them while they are within
# staging of each other, and again for a job that is further behind.
set -eu
name=same-order
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 timeout

files=200
bytes=40000
staging=$((4 << 20))
cached=$(((1 << 20) / bytes))
mkdir "$src/d"
for i in $(seq $files); do
	head -c $bytes /dev/urandom >"$src/d/$i"
done
(cd "$src" && find . -type f | shuf --random-source="$refrain") >"$work/order"

# jobs.py MOUNT ORDER JOBS GAP: each job is GAP files behind the previous one,
# and at most 4 GAP files ahead of the next. Pages are dropped, so that no job
# finds pages of another in the page cache.
cat >"$work/jobs.py" <<'PY'
import os, sys, threading

mnt, order = sys.argv[1:3]
jobs, gap = (int(a) for a in sys.argv[3:])
names = open(order).read().splitlines()
at = [0] * jobs
moved = threading.Condition()


def read(job):
    for i, name in enumerate(names):
        with moved:
            moved.wait_for(
                lambda: i - min(at) <= 4 * gap and
                (job == 0 or at[job - 1] >= min(i + gap, len(names))))
        with open(os.path.join(mnt, name), 'rb') as f:
            while f.read(1 << 16):
                pass
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with moved:
            at[job] = i + 1
            moved.notify_all()


threads = [threading.Thread(target=read, args=(j,)) for j in range(jobs)]
[t.start() for t in threads]
[t.join() for t in threads]
PY

# planned FILES: are at least FILES files planned?
planned() {
	[ "$(status_field planned_positions)" -ge "$1" ]
}

# origin_of JOBS GAP: run the jobs with a plan for each; set $got to the bytes
# from the origin.
origin_of() {
	start_mount "$src" "$mnt" --cache "$work/cache:1M" --staging $staging \
		--limit 1M --chunk 1M
	scan_through
	sent=
	for _ in $(seq "$1"); do
		"$refrain" plan --batch 8 "$mnt" <"$work/order" \
			>/dev/null 2>&1 &
		sent="$sent $!"
	done
	# Cached files at the beginning of the order count as done.
	wait_for 20 planned $(($1 * (files - cached))) ||
		fail 'the plans are not there'
	timeout $((60 * patience)) python3 "$work/jobs.py" "$mnt" \
		"$work/order" "$1" "$2" || fail 'the jobs'
	for p in $sent; do
		kill "$p" 2>/dev/null || :
		wait "$p" || :
	done
	got=$(status_field origin_bytes)
	note "$1 jobs, $2 files apart: $got bytes of the origin"
	stop_mount
}

origin_of 1 4 # this fills the cache
origin_of 1 4
one=$got
for jobs in 2 4; do
	origin_of $jobs 4
	[ "$got" -le $((one + one / 2)) ] ||
		fail "$jobs jobs: $got bytes of the origin, one: $one"
done
origin_of 2 $files # the second job finds items that are left in staging
[ "$got" -ge $((2 * one - staging)) ] ||
	fail "apart: $got bytes of the origin, one: $one"
echo PASS

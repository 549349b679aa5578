#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A loader on a mount: what is in the tier is read there, without the mount;
# what is not is fetched in the order of the run. The samples are those of the
# bare directory whatever becomes of the entries, and of the mount.
set -eu
name=direct
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
"$refrain" make-dataset --classes 3 --images $images --size 96x72 \
	"$work/data" >/dev/null
rm -rf "$src"
mkdir "$src"
mv "$work/data" "$src/train"
bytes=$(tree_bytes "$src/train")

# load DATASET OPTION ...: its JSON is in $work/json.
load() {
	timeout 120 "$refrain" load "$@" --batch 16 --size 32 --seed 5 --json \
		>"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

# Reads that the mount has answered.
mount_reads() {
	echo $(($(status_field hits) + $(status_field misses)))
}

load "$src/train" --epochs 2 --echo 2
want=$(value pixel_hash)
expect 'direct hits in a directory' "$(value direct_hits)" 0

# same WHAT OPTION ...: a run on the mount has the pixels of the directory.
dataset=$mnt/train
same() {
	what=$1
	shift
	told=$(status_field direct_hits)
	load "$dataset" --epochs 2 --echo 2 "$@"
	expect "direct hits that the mount was told, $what" \
		"$(($(status_field direct_hits) - told))" \
		"$(value direct_hits)"
	expect "pixels, $what" "$(value pixel_hash)" "$want"
	expect "errors, $what" "$(value errors)" 0
	expect "files, $what" "$(value files_read)" $((2 * images))
}

# all_direct WHAT OPTION ...: a run that the mount is not asked for. On a busy
# machine an answer of the mount may come later than the 250 ms that reads wait
# for it. These are then read through the mount, so the run is repeated.
all_direct() {
	for try in 1 2 3; do
		direct_before=$(status_field direct_hit_bytes)
		reads=$(mount_reads)
		same "$@"
		[ "$(value direct_hits)" -lt $((2 * images)) ] || break
		note "$1, run $try: only $(value direct_hits) direct hits"
	done
	expect "direct hits, $1" "$(value direct_hits)" $((2 * images))
	expect "bytes of direct hits, $1" \
		"$(($(status_field direct_hit_bytes) - direct_before))" \
		$((2 * bytes))
	expect "reads that came to the mount, $1" "$(mount_reads)" "$reads"
}

# -- Cold: fetched in the order of the run ------------------------------------
start_mount "$src" "$mnt" --cache "$work/tier:64M"
scan_through
same cold --step-ms 10 --reads-ahead 8 --batches-ahead 2
expect 'origin bytes, cold' "$(status_field origin_bytes)" "$bytes"
# What was fetched ahead is read through the mount, or opened in the tier.
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'the plan was of no use'
expect 'wasted' "$(status_field prefetch_wasted)" 0
wait_for 10 has_status plans 0 || fail 'a plan is left'
note "cold: $(status_field prefetch_issued) fetched ahead," \
	"$(value direct_hits) of $((2 * images)) direct"

# -- Warm: the mount is not asked ---------------------------------------------
"$refrain" warm "$mnt" >/dev/null 2>&1 || fail 'cannot warm'
bytes_before=$(status_field origin_bytes)
for threads in 1 4; do
	all_direct "warm, $threads threads" --threads $threads
done
"$refrain" index "$mnt/train" >"$work/list"
dataset=$work/list
all_direct 'a list' --root "$mnt/train"
dataset=$mnt/train
expect 'origin bytes, warm' "$(status_field origin_bytes)" "$bytes_before"
same 'without help' --no-mount-help
expect 'direct hits without help' "$(value direct_hits)" 0
wait_for 10 has_status plans 0 || fail 'a plan is left'
note 'warm: all direct'

# -- Direct hits are reported to the mount ------------------------------------
"$refrain" status "$mnt" | grep -q 'more opened directly by loaders' ||
	fail 'the screen does not show direct hits'
count=$(status_field direct_hits)
"$refrain" status "$mnt" --prometheus |
	grep -q "^refrain_direct_hits_total{.*} $count\$" ||
	fail 'Prometheus does not get direct hits'
# A loader that is killed loses only what it had not reported.
told=$(status_field direct_hits)
"$refrain" load "$mnt/train" --batch 16 --size 32 --step-ms 50 \
	--epochs 100 >/dev/null 2>&1 &
loader=$!
more_told() {
	[ "$(status_field direct_hits)" -gt "$told" ]
}
wait_for 20 more_told || fail 'direct hits are told at the end only'
kill -9 $loader
wait $loader 2>/dev/null || :
python3 - "$mnt" <<'END' || fail 'malformed reports are taken'
import json, os, socket, sys

s = socket.socket(socket.AF_UNIX)
s.connect(os.getxattr(sys.argv[1], 'user.refrain.control'))
answers = s.makefile()

def ask(**request):
    s.sendall(json.dumps(request).encode() + b'\n')
    return json.loads(answers.readline())

def told():
    status = ask(cmd='status')['status']
    return status['direct_hits'], status['direct_hit_bytes']

before = told()
for bad in (-1, 1.5, '1', None, 1 << 60):
    assert not ask(cmd='report', direct_hits=bad)['ok'], bad
    assert not ask(cmd='report', direct_hits=1, direct_hit_bytes=bad)['ok']
assert told() == before
assert ask(cmd='report')['ok']
assert ask(cmd='report', direct_hits=3, direct_hit_bytes=40)['ok']
assert ask(cmd='plan')['ok']
assert ask(cmd='plan-progress', position=0, direct_hits=2)['ok']
assert not ask(cmd='plan-progress', direct_hits=-2)['ok']
assert told() == (before[0] + 5, before[1] + 40), told()
END

# -- Damaged entries ----------------------------------------------------------
# damage SEED: 60 entries.
damage() {
	python3 - "$work/tier" "$1" <<'END'
import os, random, sys

def name_bytes(path):
    return int(path.rsplit('-', 1)[1])

top = sys.argv[1]
rng = random.Random(int(sys.argv[2]))
files = sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs
               if '-' in f and len(f) > 33)
files = [f for f in files
         if not os.path.islink(f) and os.path.getsize(f) > name_bytes(f)]
bad = rng.sample(files, 60)
for n, path in enumerate(bad):
    size = os.path.getsize(path)
    content = name_bytes(path)
    if n % 6 == 0:
        os.truncate(path, rng.randrange(size))
    elif n % 6 == 1:
        with open(path, 'ab') as f:
            f.write(b'x')
    elif n % 6 == 2:
        os.unlink(path)
        os.symlink(files[0], path)
    elif n % 6 == 3:
        os.unlink(path)
    else:
        at = rng.randrange(content) if n % 6 == 4 else \
            rng.randrange(content, size)
        with open(path, 'r+b') as f:
            f.seek(at)
            old = f.read(1)
            f.seek(at)
            f.write(bytes([old[0] ^ 1]))
END
}
# As above, an answer may be late. What was damaged before may still be.
for try in 1 2 3; do
	damage $try || fail 'cannot damage the tier'
	same 'damaged entries'
	hits=$(value direct_hits)
	[ "$hits" -lt $((2 * images)) ] || fail 'damaged entries were taken'
	[ "$hits" -lt $((2 * (images - 60 * try))) ] || break
	note "damaged entries, run $try: only $hits direct hits"
done
[ "$hits" -ge $((2 * (images - 60 * try))) ] || fail "only $hits direct hits"

# -- A file that changes ------------------------------------------------------
changed=$(find "$src/train" -name '*.jpg' | sort | head -n 1)
other=$(find "$src/train" -name '*.jpg' | sort | tail -n 1)
cp "$other" "$changed"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
load "$src/train" --epochs 2 --echo 2
[ "$(value pixel_hash)" != "$want" ] || fail 'the change changes nothing'
want=$(value pixel_hash)
same 'a changed file'
stop_mount

# -- Cold, and only half of it fits -------------------------------------------
half=$((bytes / 2))
start_mount "$src" "$mnt" --cache "$work/half:$((half / 1024))K"
scan_through
same 'half of it'
expect 'wasted, half' "$(status_field prefetch_wasted)" 0
note "half: $(value direct_hits) of $((2 * images)) direct"

# -- Echoes: a step costs the source B (1 - c) / e ----------------------------
# All that the kernel and the mount still have of an epoch would be missing in
# the next, so each run has a mount of its own, staging is small, and runs of
# several epochs go in order: no file comes again before it was forgotten.
tiny=960
"$refrain" make-dataset --classes 2 --images $tiny --size 32x32 \
	"$work/tiny" >/dev/null
bytes=$(tree_bytes "$work/tiny")

mount_tiny() {
	stop_mount
	start_mount "$work/tiny" "$mnt" --cache "$work/part:$((tiny * 2))K" \
		--pages 64K --limit 64K --chunk 64K --staging 256K
	scan_through
}

# echo_reads E EPOCHS OPTION ...: a run that begins with the second epoch.
echo_reads() {
	e=$1 epochs=$2
	shift 2
	mount_tiny
	load "$mnt" --echo "$e" --epochs "$epochs" "$@"
	awk -v e="$e" -v n=$tiny -v kept="$(status_field entries)" \
		-v steps="$(value steps)" \
		-v reads="$(status_field origin_reads)" \
		-v bytes="$(status_field origin_bytes)" \
		-v rest=$((bytes - $(status_field resident_bytes))) 'BEGIN {
		want = 16 * (n - kept) / n / e
		off = reads / steps / want - 1
		off_bytes = bytes / steps / (16 * rest / n / e) - 1
		printf("e %s, c %.3f: %.3f reads a step for %.3f, bytes " \
			"%+.2f %%\n", e, kept / n, reads / steps, want,
			100 * off_bytes)
		exit !(kept > 0.4 * n && kept < 0.6 * n &&
			off * off < 0.0001 && off_bytes * off_bytes < 0.0001)
	}' >"$work/echo" || fail "not within 1 %: $(cat "$work/echo")"
	note "$(cat "$work/echo")"
	expect "fresh, e $e" "$(value fresh)" $((epochs * tiny))
	expect "wasted, e $e" "$(status_field prefetch_wasted)" 0
}

mount_tiny
load "$mnt"
read=$(status_field origin_bytes)
if [ "$read" -lt "$bytes" ] || [ $((read * 100)) -gt $((bytes * 101)) ]; then
	fail "the first epoch read $read bytes of $bytes"
fi
for e in 1 2 2.5 4; do
	echo_reads $e 1
done
echo_reads 2.5 3 --in-order --step-ms 4
# Without steps a run may be over before its first miss has made a plan.
[ "$(status_field prefetch_issued)" -gt 0 ] || fail 'nothing was ahead'

# -- A mount that dies --------------------------------------------------------
# What the kernel has of a mount's files outlives the daemon: a fresh one.
stop_mount
start_mount "$src" "$mnt" --cache "$work/half:$((half / 1024))K"
scan_through
reads=$(mount_reads)
timeout 120 "$refrain" load "$mnt/train" --batch 4 --reads-ahead 8 \
	--batches-ahead 2 --step-ms 10 --epochs 4 --timeout 20 \
	--policy zero --max-damage 1 --size 32 --json >"$work/json" \
	2>"$work/err" &
loader=$!
some_reads() {
	[ "$(mount_reads)" -ge $((reads + 20)) ]
}
wait_for 20 some_reads || fail 'the loader does not start'
kill_mount
status=0
wait $loader || status=$?
expect 'exit status when the mount dies' $status 0
expect 'served when the mount dies' "$(value served)" $((4 * images))
[ "$(value direct_hits)" -gt 0 ] || fail 'no direct hits when the mount dies'
[ "$(value zero_filled)" -gt 0 ] ||
	fail "nothing was filled in: $(cat "$work/json")"
note "dead: $(value direct_hits) direct, $(value zero_filled) filled in"
umount -l "$mnt"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Daemons that die, in ways that take long to try: with a store as the source,
# in each phase of a mount, with damaged state, with very many files, and for
# minutes. Run by 'make check-survive'.
#
# REFRAIN_SURVIVE names the parts; REFRAIN_KILLS is how often a daemon is killed
# (30), REFRAIN_DAMAGES how often state is damaged (20), REFRAIN_FILES how many
# there are (1300000), MINUTES how long the last part takes.
set -eu
name=survive-long
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3 curl
# shellcheck source=tests/system/far-lib.sh
. "${srcdir:-.}/tests/system/far-lib.sh"

kills=${REFRAIN_KILLS:-30}
here=$(cd "$(dirname "$0")" && pwd)
cache=$work/cache
make_tree "$src" 3 100 300000
head -c 900000 /dev/urandom >"$src/shard"
mkdir "$src/many"
(cd "$src/many" && seq -f 'n%05.0f' 50 | xargs touch)
bytes=$(tree_bytes "$src")

# find_holder: $holder and $pid.
find_holder() {
	pid=$(status_field pid)
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
}

ends_with_mount() {
	find_holder
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 20 has_ended "$holder" || fail 'the holder outlives the mount'
}

readers() {
	python3 "$here/survive.py" "$refrain" "$mnt" "$src" "$kills" \
		"${REFRAIN_SEED:-$$}" >"$work/said" 2>&1 ||
		fail "$1: $(tail -n 30 "$work/said" "$work/log")"
	note "$1: $(tail -n 1 "$work/said")"
	expect "$1: recoveries" "$(status_field recoveries)" "$kills"
}

mount_tree() {
	"$refrain" mount "$src" "$mnt" --cache "$cache:1G" --staging 512K \
		--limit 128K --chunk 64K --log-file "$work/log" "$@" ||
		fail 'cannot mount'
	find_holder
}

# -- A store: readers, and what it is asked for -------------------------------
part_s3() {
	far_start
	find "$src" -type f -printf '%P\n' >"$work/names"
	while read -r f; do
		curl -sf -X PUT --data-binary "@$src/$f" "$far/odd/$f" ||
			fail "cannot put $f"
	done <"$work/names"
	far_zero
	"$refrain" mount s3://odd "$mnt" --endpoint-url "$far" \
		--cache "$cache:1G" --staging 512K --limit 128K --chunk 64K \
		--log-file "$work/log" || fail 'cannot mount'
	readers 's3'
	got=$(far_count bytes)
	most=$((bytes + kills * 512 * 1024 + bytes / 10))
	note "s3: $got bytes of $bytes, with $kills deaths"
	[ "$got" -le $most ] || fail "the store sent $got bytes, over $most"
	ends_with_mount
}

# -- In each phase of a mount -------------------------------------------------
part_phases() {
	i=0
	while [ $i -lt "$kills" ]; do
		"$refrain" clear "$cache" >/dev/null 2>&1 || :
		mount_tree
		(cd "$mnt" && find . -type f -size +0 -print0 |
			xargs -0 cat >/dev/null) &
		reads=$!
		case $((i % 4)) in
		0) ;; # the first scan
		1) "$refrain" refresh "$mnt" >/dev/null 2>&1 & ;;
		2) wait_for 20 has_status scan complete || : ;; # it is saved
		3) "$refrain" upgrade "$mnt" >/dev/null 2>&1 & ;;
		esac
		for p in $(cat "/proc/$holder/task/$holder/children"); do
			kill -9 "$p" 2>/dev/null || :
		done
		# The next one while it takes over, too.
		[ $((i % 3)) -ne 0 ] ||
			for p in $(cat "/proc/$holder/task/$holder/children")
			do
				kill -9 "$p" 2>/dev/null || :
			done
		wait $reads || fail "phase $((i % 4)): a reader has an error"
		(cd "$mnt" && sha256sum --quiet --strict -c "$src.sums") ||
			fail "phase $((i % 4)): wrong bytes"
		ends_with_mount
		i=$((i + 1))
	done
	note "phases: $kills deaths"
}

# -- Damaged state: never wrong bytes, never a process that hangs -------------
part_states() {
	python3 - "$refrain" "$src" "$mnt" "$cache" "$helpers/status_field" \
		"${REFRAIN_DAMAGES:-20}" >"$work/said" 2>&1 <<'END2' ||
import os, random, signal, subprocess, sys, time

refrain, src, mnt, cache, field, times = sys.argv[1:]
rng = random.Random(int(os.environ.get('REFRAIN_SEED', os.getpid())))
names = [os.path.join(d, f)[len(src) + 1:]
         for d, _, fs in os.walk(src) for f in fs if '/many' not in d]


def value(name):
    return subprocess.run([field, mnt, name], capture_output=True, text=True,
                          timeout=120).stdout.strip()


def parent(pid):
    with open('/proc/%d/status' % pid) as f:
        return int(f.read().split('PPid:')[1].split()[0])


def damage(holder):
    fds = '/proc/%d/fd' % holder
    kept = [os.path.join(fds, fd) for fd in os.listdir(fds)
            if 'memfd:refrain-' in os.readlink(os.path.join(fds, fd))]
    fd = os.open(rng.choice(kept), os.O_RDWR)
    at = rng.randrange(8192 if rng.random() < .5 else 1024)
    at %= os.fstat(fd).st_size
    torn = rng.random() < .3
    old = os.pread(fd, rng.choice((64, 512)) if torn else 1, at)
    os.pwrite(fd, bytes(len(old)) if torn else
              bytes([old[0] ^ 1 << rng.randrange(8)]), at)
    os.close(fd)


went_on = 0
for i in range(int(times)):
    subprocess.run([refrain, 'mount', src, mnt, '--cache', cache + ':1G',
                    '--recover-timeout', '10'], check=True, timeout=120)
    pid = int(value('pid'))
    holder = parent(pid)
    opened = {n: os.open(os.path.join(mnt, n), os.O_RDONLY)
              for n in rng.sample(names, 5)}
    os.kill(pid, signal.SIGSTOP) if rng.random() < .2 else None
    damage(holder)
    os.kill(pid, signal.SIGKILL)
    for n, fd in opened.items():
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        with open(os.path.join(src, n), 'rb') as f:
            want = f.read()
        try:
            assert os.pread(fd, 1 << 20, 0) == want[:1 << 20], 'wrong: ' + n
            os.close(fd)
        except OSError:
            pass            # the connection has ended
    until = time.monotonic() + 60
    while value('ready') != 'true':
        assert time.monotonic() < until, 'no mount'
        time.sleep(0.02)
    for n in rng.sample(names, 5):
        with open(os.path.join(src, n), 'rb') as a, \
                open(os.path.join(mnt, n), 'rb') as b:
            assert a.read() == b.read(), 'wrong after it: ' + n
    went_on += value('recoveries') == '1'
    holder = parent(int(value('pid')))
    subprocess.run([refrain, 'umount', mnt], check=True, timeout=60)
print('%s states were damaged, and %d gone on with' % (times, went_on))
END2
		fail "states: $(cat "$work/said")"
	note "states: $(tail -n 1 "$work/said")"
}

# -- Very many files ----------------------------------------------------------
part_files() {
	files=${REFRAIN_FILES:-1300000}
	"$refrain" mount "synthetic:files=$files,size=1000" "$mnt" \
		--cache "$work/large:64M" --log-file "$work/log" ||
		fail 'cannot mount'
	wait_for 300 has_status scan complete || fail 'the scan does not end'
	find_holder
	n=5
	python3 - "$mnt" "$holder" $n "$helpers/status_field" >"$work/said" \
		<<'END2' || fail "files: $(tail "$work/log")"
import os, signal, subprocess, sys, time

mnt, holder, n, field = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), \
    sys.argv[4]
took = []
for _ in range(n):
    with open('/proc/%d/task/%d/children' % (holder, holder)) as f:
        daemon = int(f.read().split()[0])
    begun = time.monotonic()
    os.kill(daemon, signal.SIGKILL)
    os.statvfs(mnt)
    took.append(time.monotonic() - begun)
    # One that is killed before it has said that it serves counts as a failure.
    while subprocess.run([field, mnt, 'ready'], capture_output=True,
                         text=True).stdout.strip() != 'true':
        pass
took.sort()
print('first answer after: median %.0f ms, most %.0f ms' % (
    1e3 * took[n // 2], 1e3 * took[-1]))
END2
	note "$files files: $(cat "$work/said")"
	ends_with_mount
}

# -- For minutes --------------------------------------------------------------
part_soak() {
	mount_tree --log-level notice
	"$refrain" warm "$mnt" >/dev/null 2>&1 || :
	times=$((${MINUTES:-1} * 12))
	i=0
	while [ $i -lt $times ]; do
		find_holder
		if [ $i -eq 2 ] || [ $i -eq $((times - 1)) ]; then
			# shellcheck disable=SC2012 # numbers
			note "soak: $i deaths: $(awk '/^VmRSS:/ { print $2 }' \
				"/proc/$pid/status") KiB, holder $(awk \
				'/^VmRSS:/ { print $2 }' \
				"/proc/$holder/status") KiB, $(ls \
				"/proc/$pid/fd" | wc -l) and $(ls \
				"/proc/$holder/fd" | wc -l) descriptors, $(wc \
				-l <"$work/log") lines of log"
		fi
		kill -9 "$pid"
		(cd "$mnt" && sha256sum --quiet --strict -c "$src.sums") ||
			fail 'soak: wrong bytes'
		sleep 4
		i=$((i + 1))
	done
	ends_with_mount
}

for part in ${REFRAIN_SURVIVE:-s3 phases states files soak}; do
	"$refrain" clear "$cache" >/dev/null 2>&1 || :
	: >"$work/log"
	"part_$part"
done

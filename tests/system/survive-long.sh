#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Daemons that die in ways that take long to test: with a store as the source,
# in each phase of a mount, with damaged state, without memory, with very many
# files, and for minutes. Run by 'make check-survive'.
#
# REFRAIN_SURVIVE names the parts to run. REFRAIN_KILLS is the number of kills
# (30), REFRAIN_PHASE_KILLS the number in each phase (a tenth of that),
# REFRAIN_DAMAGES the number of damages of state (20), REFRAIN_NAMES the number
# of listed names (3000), REFRAIN_FILES the number of files in the part with
# very many (1300000), and MINUTES the time of the last part.
set -eu
name=survive-long
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3 curl
# shellcheck source=tests/system/far-lib.sh
. "${srcdir:-.}/tests/system/far-lib.sh"
# shellcheck source=tests/system/group-lib.sh
. "${srcdir:-.}/tests/system/group-lib.sh"

kills=${REFRAIN_KILLS:-30}
seed=${REFRAIN_SEED:-$$}
note "seed $seed; again with REFRAIN_SEED=$seed"
here=$(cd "$(dirname "$0")" && pwd)
cache=$work/cache
make_tree "$src" 3 100 300000
head -c 900000 /dev/urandom >"$src/shard"
mkdir "$src/many"
(cd "$src/many" && seq -f 'n%05.0f' 50 | xargs touch)

# find_holder: set $holder and $pid.
find_holder() {
	pid=$(status_field pid)
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
}

ends_with_mount() {
	find_holder
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 20 has_ended "$holder" || fail 'the holder outlives the mount'
}

# say WHAT: print the output of a program of the test.
say() {
	while read -r line; do
		note "$1: $line"
	done <"$work/said"
}

mount_tree() {
	"$refrain" mount "$src" "$mnt" --cache "$cache:1G" --staging 512K \
		--limit 128K --chunk 64K --log-file "$work/log" "$@" ||
		fail 'cannot mount'
	find_holder
}

# -- A store: readers, and what it is asked for -------------------------------

# store_files DIR: make enough files that some are fetched until the end, names
# to list, and files for which readers wait.
store_files() {
	make_tree "$1" 4 100 300000
	mkdir "$1/bulk" "$1/many" "$1/moving" "$1/stalled"
	head -c $((64000 * 30 * (kills < 50 ? 50 : kills) / 10)) /dev/urandom |
		(cd "$1/bulk" && split -a 4 -b 64000 - f)
	(cd "$1/many" && seq -f 'n%05.0f' "${REFRAIN_NAMES:-3000}" |
		xargs touch)
	for i in 0 1; do
		head -c 60000 /dev/urandom >"$1/stalled/s$i"
	done
}

put_all() {
	python3 - "$1" "$far" <<'END2' || fail 'cannot fill the store'
import http.client, os, sys
top, url = sys.argv[1:]
to = http.client.HTTPConnection(url.split('//')[1])
for d, _, fs in os.walk(top):
    for f in fs:
        path = os.path.join(d, f)
        with open(path, 'rb') as data:
            to.request('PUT', '/odd/' + os.path.relpath(path, top),
                       data.read())
        answer = to.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
END2
}

# stalls: stop the store for seconds at a time, too.
stalls() {
	while [ ! -e "$work/enough" ]; do
		curl -sf "$far/-/set?delay_ms=1500" >/dev/null
		sleep 1
		curl -sf "$far/-/set?delay_ms=0" >/dev/null
		sleep 2
	done
}

part_s3() {
	was=$src
	src=$work/store
	store_files "$src"
	for REFRAIN_DISABLE in '' resend; do
		export REFRAIN_DISABLE
		what="s3, ${REFRAIN_DISABLE:+without }RESEND"
		far_start
		put_all "$src"
		far_zero
		# Use the smallest staging that these items allow.
		"$refrain" mount s3://odd "$mnt" --endpoint-url "$far" \
			--cache "$cache:2G" --staging 512K --limit 128K \
			--chunk 64K --fault stall=1,match=stalled/ \
			--log-file "$work/log" || fail 'cannot mount'
		find_holder
		rm -f "$work/enough"
		stalls &
		stalling=$!
		SURVIVE_STORE=$far/odd python3 "$here/survive.py" "$refrain" \
			"$mnt" "$src" "$kills" "$seed" >"$work/said" 2>&1 ||
			fail "$what: $(tail -n 30 "$work/said" "$work/log")"
		: >"$work/enough"
		wait $stalling || fail 'the store cannot be set'
		say "$what"
		expect "$what: recoveries" "$(status_field recoveries)" "$kills"
		put=$(sed -n 's/.* replaced, \([0-9]*\) bytes put.*/\1/p' \
			"$work/said")
		got=$(far_count object_bytes)
		all=$(($(tree_bytes "$src") + put))
		note "$what: $got bytes came, of $all, with $kills deaths"
		[ "$got" -le $((all + kills * 512 * 1024)) ] ||
			fail "$what: the store sent $got bytes"
		ends_with_mount
		kill "$far_pid"
		exec 9>&-
		rm "$work/far.in"
		"$refrain" clear "$cache" >/dev/null
	done
	REFRAIN_DISABLE=
	src=$was
}

# -- In each phase of a mount -------------------------------------------------
part_phases() {
	# There are enough names that saving their list takes some time.
	(cd "$src/many" && seq -f 'n%05.0f' 20000 | xargs touch)
	for REFRAIN_DISABLE in '' resend; do
		export REFRAIN_DISABLE
		what="phases, ${REFRAIN_DISABLE:+without }RESEND"
		python3 "$here/survive_phases.py" "$refrain" "$src" "$mnt" \
			"$cache" "$helpers/status_field" "$work/log" \
			"${REFRAIN_PHASE_KILLS:-$(((kills + 9) / 10))}" \
			"$seed" >"$work/said" 2>&1 ||
			fail "$what: $(tail -n 30 "$work/said" "$work/log")"
		say "$what"
	done
	REFRAIN_DISABLE=
}

# -- Damaged state: never wrong bytes, never a process that hangs -------------
part_states() {
	for REFRAIN_DISABLE in '' resend; do
		export REFRAIN_DISABLE
		what="states, ${REFRAIN_DISABLE:+without }RESEND"
		n=${REFRAIN_DAMAGES:-20}
		python3 "$here/survive_states.py" "$refrain" "$src" "$mnt" \
			"$cache" "$helpers/status_field" "$work/log" \
			$(((n + 1) / 2)) "$seed" >"$work/said" 2>&1 ||
			fail "$what: $(tail -n 30 "$work/said" "$work/log")"
		say "$what"
	done
	REFRAIN_DISABLE=
}

# -- Too little memory: the kernel kills the daemon ---------------------------

oom_kills() {
	[ "$(group_kills)" -ge "$1" ]
}

part_memory() {
	if ! find_controller || ! make_group "${REFRAIN_OOM_MIB:-48}"; then
		note 'memory: no control group of our own'
		return 0
	fi
	mkdir "$src/large"
	for i in $(seq 48); do
		head -c 3000000 /dev/urandom >"$src/large/f$i"
	done
	"$reader" "$src/large" --make-sums "$work/large.sums" >/dev/null
	# The holder and its daemon; readers are outside.
	# shellcheck disable=SC2016 # of the inner shell
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" \
		"$refrain" mount "$src" "$mnt" --cache "$cache:10M" \
		--limit 4M --staging 128M --log-file "$work/log" ||
		fail 'cannot mount'
	find_holder
	scan_through
	rm -f "$work/enough"
	for i in 1 2 3; do
		until [ -e "$work/enough" ]; do
			"$reader" "$mnt/large" --threads 16 --drop --seed $i \
				--sums "$work/large.sums" || exit 1
		done >"$work/read.$i" 2>&1 &
		eval "reads_$i=$!"
	done
	wait_for 120 oom_kills 10 ||
		fail "memory: the kernel killed only $(group_kills) daemons"
	set_group_limit 1024
	wait_for 20 has_status ready true || fail 'memory: no daemon'
	: >"$work/enough"
	for i in 1 2 3; do
		eval "wait \"\$reads_$i\"" ||
			fail "memory: readers: $(cat "$work/read.$i")"
	done
	note "memory: $(group_kills) daemons killed by the kernel," \
		"$(status_field recoveries) recoveries, no error"
	! has_ended "$holder" || fail 'memory: the holder was killed'
	ends_with_mount
	rm -r "$src/large"
	end_group
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
	PYTHONPATH=$here python3 - "$mnt" "$holder" $n \
		"$helpers/status_field" >"$work/said" \
		<<'END2' || fail "files: $(tail "$work/log")"
import os, signal, subprocess, sys, time
from holder import daemons

mnt, holder, n, field = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), \
    sys.argv[4]
took = []
for _ in range(n):
    daemon = daemons(holder)[0]
    begun = time.monotonic()
    os.kill(daemon, signal.SIGKILL)
    os.statvfs(mnt)
    took.append(time.monotonic() - begun)
    # A daemon that is killed before it has reported that it serves counts as a
    # failure.
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

# used PID: print its memory in KiB and its number of descriptors.
used() {
	echo "$(awk '/^VmRSS:/ { print $2 }' "/proc/$1/status")" \
		"$(find "/proc/$1/fd" -type l | wc -l)"
}

# is_flat WHAT KIB FDS KIB FDS: compare the memory and descriptors at first with
# those now.
is_flat() {
	[ "$4" -le $(($2 + $2 / 4 + 1024)) ] ||
		fail "soak: $1 has $4 KiB, after $2"
	[ "$5" -le $(($3 + 2)) ] ||
		fail "soak: $1 has $5 descriptors, after $3"
}

part_soak() {
	mount_tree --log-level notice
	"$refrain" warm "$mnt" >/dev/null 2>&1 || :
	times=$((${MINUTES:-1} * 12))
	i=0
	while [ $i -lt $times ]; do
		due=$(($(date +%s) + 5))
		find_holder
		if [ $i -eq 4 ] || [ $i -eq $((times - 1)) ]; then
			daemon_used=$(used "$pid")
			holder_used=$(used "$holder")
			lines=$(wc -l <"$work/log")
			note "soak: $i deaths: daemon $daemon_used," \
				"holder $holder_used KiB and descriptors," \
				"$lines lines of log"
		fi
		if [ $i -eq 4 ]; then
			daemon_first=$daemon_used
			holder_first=$holder_used
			lines_first=$lines
		fi
		kill -9 "$pid"
		(cd "$mnt" && sha256sum --quiet --strict -c "$src.sums") ||
			fail 'soak: wrong bytes'
		while [ "$(date +%s)" -lt $due ]; do
			sleep 0.5
		done
		i=$((i + 1))
	done
	# shellcheck disable=SC2086 # words
	is_flat 'the daemon' $daemon_first $daemon_used
	# shellcheck disable=SC2086
	is_flat 'the holder' $holder_first $holder_used
	[ $((lines - lines_first)) -le $((3 * (times - 5))) ] ||
		fail "soak: the log has $lines lines, after $lines_first"
	ends_with_mount
}

for part in ${REFRAIN_SURVIVE:-s3 phases states memory files soak}; do
	[ ! -e "$cache" ] || "$refrain" clear "$cache" >/dev/null 2>&1 || :
	: >"$work/log"
	"part_$part"
done

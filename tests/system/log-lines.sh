#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon's log: what an operator must know, one line each, wherever the
# log goes; a flood of errors is a few lines; no name can forge a line.
set -u
name=log
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

cache=$work/cache
log=$work/log

# logged PATTERN [FILE]
logged() {
	grep -q -e "$1" "${2:-$log}"
}

must_log() {
	wait_for 20 logged "$@" || {
		cat "${2:-$log}"
		fail "not logged: $1"
	}
}

must_not_log() {
	! logged "$@" || fail "logged: $(grep -e "$1" "${2:-$log}" | head -n 1)"
}

mount_logged() {
	start_mount "$src" "$mnt" --cache "$cache:1M" --log-file "$log" \
		--log-level info "$@"
}

refault() {
	"$refrain" fault "$mnt" "$1" || fail "cannot set the fault '$1'"
}

# epoch: read every file; some reads may fail, and take as long as --timeout.
epoch() {
	find "$mnt" -type f -print0 |
		xargs -0 -n 1 -P 32 cat >/dev/null 2>"$work/failed"
}

make_files() {
	i=0
	while [ $i -lt 20 ]; do
		head -c 20000 /dev/urandom >"$src/f$i"
		i=$((i + 1))
	done
}

# -- Standard error, the journal ----------------------------------------------

make_files
start_mount "$src" "$mnt" --cache "$cache:1M"
stop_mount
must_log "^refrain: notice: mounted '$src' at '$mnt'\$" "$daemon_err"
must_log 'notice: the mount at .* has ended: it was unmounted$' "$daemon_err"
expect 'lines of a mount without trouble' "$(wc -l <"$daemon_err")" 2

journal=$work/daemon.$((daemons + 1)).err
: >"$journal"
JOURNAL_STREAM=$(stat -c %d:%i "$journal")
export JOURNAL_STREAM
start_mount "$src" "$mnt" --cache "$cache:1M"
kill -TERM "$daemon"
daemon_ended
must_log "^<5>mounted '" "$journal"
must_log '^<5>the mount at .* has ended: stopped by signal 15$' "$journal"
JOURNAL_STREAM=1:2
start_mount "$src" "$mnt" --cache "$cache:1M"
stop_mount
must_log '^refrain: notice: mounted' "$daemon_err"
unset JOURNAL_STREAM

# -- The source ---------------------------------------------------------------

rm -rf "$cache"
evil=$(printf 'evil\033[2J\nrefrain: error: forged')
head -c 5000 /dev/urandom >"$src/$evil"
mount_logged --fault '' --timeout 1
scan_through
must_log ': info: the source is listed: 21 files$'
refault 'error=1'
epoch && fail 'an epoch without a source'
must_log "warning: faults are injected on request: 'error=1'"
must_log "warning: a request for 'f[0-9]*' failed at the source: Input/output"
must_log "error: the source failed: gave up on 'f[0-9]*' after [0-9]* attempts*"
must_log "error: a reader of 'f[0-9]*' got an I/O error: "
refault ''
epoch || fail 'an epoch with the source back'
must_log 'notice: the source answers again; [0-9]* requests* given up'
must_not_log '^refrain: error: forged'
printf 'other' >"$src/f1.new" && mv "$src/f1.new" "$src/f1"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
must_log 'info: refreshed: [0-9]* names* changed, added'
stop_mount
must_not_log "$(printf '\033')"

# A flood of errors: 20 files, each read an error after a second.
rm -rf "$cache" "$log"
mount_logged --fault 'error=1' --timeout 1
for i in 1 2 3 4 5 6; do
	ls "$mnt" >/dev/null
	epoch && fail 'an epoch of errors'
done
failures=$(status_field origin_failures)
stop_mount
[ "$failures" -ge 100 ] || fail "only $failures failures"
[ "$(wc -c <"$log")" -lt 12000 ] || fail "a log of $(wc -c <"$log") bytes"
must_log "error: [0-9]* more like this since ..:..:..Z: a reader of"
more='\([0-9]*\) more like this since [0-9:]*Z: '
counted=$(sed -n "s/.* error: ${more}the source failed.*/\\1/p
	s/.* error: the source failed.*/1/p" "$log" |
	awk '{ n += $1 } END { print n }')
expect 'failures in the log' "$counted" "$failures"
note "$failures failures in $(wc -c <"$log") bytes of log"

# -- Tiers --------------------------------------------------------------------

rm -rf "$cache" "$log"
rm "$src/$evil"
make_files
mount_logged --cache "$work/second:100K"
epoch || fail 'an epoch'
wait_for 20 has_status entries 20 || fail 'the cache does not get all files'
stop_mount
entry=$(find "$cache" -path "$cache*/??/*" -type f | head -n 1)
printf 'x' | dd of="$entry" bs=1 seek=100 conv=notrunc 2>/dev/null
other=$(find "$cache" -path "$cache*/??/*" -type f | tail -n 1)
mount_logged --cache "$work/second:100K"
rm "$other"
epoch || fail 'an epoch with damage'
must_log "warning: entry '../.*' of cache '$cache' was damaged"
must_log "warning: entry '../.*' of cache '$cache' was deleted by another"
expect 'damaged entries' "$(status_field checksum_errors)" 1
rm -rf "$cache"
for i in 20 21 22; do
	head -c 20000 /dev/urandom >"$src/f$i"
done
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
epoch || fail 'an epoch without the directory'
must_log "error: cache directory '$cache' was deleted; unmount, and mount again"
stop_mount

rm -rf "$log" "$work/second"
start_mount "$src" "$mnt" --cache "$cache:100K" --log-file "$log"
epoch || fail 'an epoch'
must_log "notice: cache '$cache' is full; nothing is evicted"
expect 'messages of a full cache' "$(grep -c 'is full' "$log")" 1
stop_mount

# -- JSON, levels, the background, SIGHUP -------------------------------------

rm -rf "$cache" "$log"
(cd "$work" && "$refrain" mount "$src" "$mnt" --cache "$cache:1M" \
	--log-file log --log-json --fault error=1 --timeout 1) ||
	fail 'no mount in the background'
daemon=$(status_field pid)
cat "$mnt/f2" >/dev/null 2>&1
must_log '"event":"read-failed"'
mv "$log" "$log.1"
kill -HUP "$daemon"
wait_for 20 test -e "$log" || fail 'SIGHUP does not open the file again'
"$refrain" umount "$mnt" || fail 'cannot unmount'
wait_for 20 daemon_gone || fail 'the daemon does not end'
daemon=
must_log '"event":"ended"'
python3 - "$log.1" "$log" "$mnt" <<'END' || fail 'the log is not JSON'
import json, re, sys
levels = {'error', 'warning', 'notice'}
for path in sys.argv[1:3]:
    for line in open(path):
        o = json.loads(line)
        assert o['level'] in levels, o
        assert o['mountpoint'] == sys.argv[3] and o['message'], o
        assert re.match(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', o['time'])
        if o['event'] == 'read-failed':
            assert o['path'] == 'f2' and o['errno'] == 5, o
END

rm -f "$log"
start_mount "$src" "$mnt" --cache "$cache:1M" --log-level error \
	--log-file "$log"
stop_mount
expect 'messages below the level' "$(wc -c <"$log")" 0

# -- What is refused ----------------------------------------------------------

"$refrain" mount "$src" "$mnt" --cache "$cache:1M" --log-level loud \
	2>"$work/said"
expect 'the status of a wrong level' $? 2
must_log "'loud' is not a level; use error, warning, notice or info" \
	"$work/said"
"$refrain" mount "$src" "$mnt" --cache "$cache:1M" --log-file /nowhere/log \
	2>"$work/said"
expect 'the status of a log that cannot be opened' $? 1
must_log "cannot open log file '/nowhere/log': No such file" "$work/said"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The daemon's log on standard error and in the journal: one line for each thing
# that an operator must know; an invalid level or file is refused.
set -u
name='log-lines'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3
# shellcheck source=tests/system/log-lib.sh
. "$(dirname "$0")/log-lib.sh"

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

# -- What is refused
"$refrain" mount "$src" "$mnt" --cache "$cache:1M" --log-level loud \
	2>"$work/said"
expect 'the status of a wrong level' $? 2
must_log "'loud' is not a level; use error, warning, notice or info" \
	"$work/said"
"$refrain" mount "$src" "$mnt" --cache "$cache:1M" --log-file /nowhere/log \
	2>"$work/said"
expect 'the status of a log that cannot be opened' $? 1
must_log "cannot open log file '/nowhere/log': No such file" "$work/said"

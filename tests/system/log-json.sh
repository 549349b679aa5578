#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The log of a daemon in the background as JSON, in a file that is opened again
# after SIGHUP. Events below its level are not written.
set -u
name='log-json'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3
# shellcheck source=tests/system/log-lib.sh
. "$(dirname "$0")/log-lib.sh"

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

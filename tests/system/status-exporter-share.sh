#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The exporter shows a share with the values of `refrain share`. A share whose
# host hangs is down, and delays only the first scrape. It is up again when the
# host continues.
set -eu
name='status-exporter-share'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/share-jobs-lib.sh
. "$(dirname "$0")/share-jobs-lib.sh"
[ -x "$PWD/refrain-exporter" ] || skip 'built without libmicrohttpd'

port=$(free_port)
"$refrain" exporter --listen "127.0.0.1:$port" &
ends_with_test $!
EXPORTER_PORT=$port
export EXPORTER_PORT

with_jobs 60 0 <<'PY'
import os, signal, time, urllib.request

from share_jobs import patience, share, start, stop, view_from, wait_for

url = f"http://127.0.0.1:{os.environ['EXPORTER_PORT']}/metrics"


def scrape():
    """Return the samples of the share, without their label."""
    begun = time.monotonic()
    try:
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
    except urllib.error.URLError:
        return {}, 0
    took = time.monotonic() - begun
    label = '{share="s"} '
    return {line.split(label)[0]: float(line.split(label)[1])
            for line in text.splitlines() if label in line}, took


job = start("--batch", "16", "--share", "s", "--epochs", "1000",
            "--steps", "100000", "--step-ms", "20")
wait_for("a step", lambda: view_from(1))
wait_for("the share is up", lambda: scrape()[0].get("refrain_share_up") == 1)
before = share()[0]
got, _ = scrape()
after = share()[0]
assert before["step"] <= got["refrain_share_steps_total"] <= after["step"], got
assert got["refrain_share_slots"] == before["slots"], got
assert got["refrain_share_jobs"] == 1, got

stop(job.pid)
got, _ = scrape()
assert got == {"refrain_share_up": 0}, got
# The first scrape waits for the host; later ones do not.
times = [scrape() for _ in range(5)]
assert all(got == {"refrain_share_up": 0} for got, _ in times), times
assert min(took for _, took in times) < 0.3 * patience, times
os.kill(job.pid, signal.SIGCONT)
wait_for("it is up again", lambda: scrape()[0].get("refrain_share_up") == 1)
job.kill()
job.communicate()
wait_for("it is gone", lambda: scrape()[0] == {})
PY
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# SIGINT ends refrain analyze while it fetches the dataset. SIGHUP stays ignored
# if nohup has set it so.
set -eu
name=analyze-nohup
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import signal, time

from analyze_run import analyze, children, end, src

fetching = analyze("--fault", "rate=1K", src, "--", "sleep", "60", "{}",
                   hangup=signal.SIG_IGN)
while not children(fetching):   # wait until it has started the daemon
    assert fetching.poll() is None
    time.sleep(0.01)


def masks():
    with open(f"/proc/{fetching.pid}/status") as f:
        return {k: int(v, 16) for k, v in
                (s.split(":", 1) for s in f) if k in ("SigIgn", "SigCgt")}


def has(mask, number):
    return mask >> number - 1 & 1


while not has(masks()["SigCgt"], signal.SIGINT):
    assert fetching.poll() is None
    time.sleep(0.01)
assert has(masks()["SigIgn"], signal.SIGHUP), masks()
fetching.send_signal(signal.SIGINT)
status, out, err = end(fetching)
assert status == 1 and "interrupted" in err and not out, err
PY

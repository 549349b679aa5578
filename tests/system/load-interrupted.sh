#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain load` prints its statistics after Ctrl-C and after SIGTERM, and ends
# by the signal.
set -eu
name=load-interrupted
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3 timeout
# shellcheck source=tests/system/load-messages-lib.sh
. "$(dirname "$0")/load-messages-lib.sh"

# The signal is sent when the trace shows that a batch was used.
for signal in INT TERM; do
	rm -f "$work/trace"
	python3 - "$refrain" "$data" "$work" $signal <<'END' ||
import json, os, signal, subprocess, sys, time

refrain, data, work, name = sys.argv[1:]
number = getattr(signal, "SIG" + name)
trace = os.path.join(work, "trace")
p = subprocess.Popen([refrain, "load", data, "--batch", "8", "--size", "32",
    "--epochs", "1000000", "--step-ms", "20", "--trace", trace, "--json"],
    stdout=subprocess.PIPE)
while not (os.path.exists(trace) and os.path.getsize(trace)):
    assert p.poll() is None, "it ended"
    time.sleep(0.01)
p.send_signal(number)
out = p.communicate(timeout=60)[0]
assert p.returncode == -number, p.returncode
assert json.loads(out)["steps"] >= 1, out
END
		fail "no statistics after SIG$signal"
	note "statistics after SIG$signal"
done

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The output of `refrain share`: shares, even beside a host that sends nonsense,
# a share that is watched until it ends, and one whose name is not UTF-8. Only a
# killed host leaves its files behind, until the next host starts.
set -eu
name=share-shown
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/share-jobs-lib.sh
. "$(dirname "$0")/share-jobs-lib.sh"

with_jobs 60 0 <<'PY'
import json, os, socket, subprocess, threading

from share_jobs import (end, patience, refrain, run_dir, same, share, start,
                        view_from, wait_for)

run = ["--batch", "16", "--epochs", "6", "--echo", "2.5"]
alone = end(start(*run))

# A host that sends nonsense does not hide the others.
def nonsense(listener):
    with listener.accept()[0] as peer:
        peer.send(b"nonsense")
        peer.recv(1)


job = start(*run, "--share", "s")
wait_for("a step", lambda: view_from(1))
for other in ("a", "z"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{run_dir}/{other}.sock")
        listener.listen()
        thread = threading.Thread(target=nonsense, args=(listener,))
        thread.start()
        got = subprocess.run([refrain, "share", "--json"],
                             capture_output=True, text=True)
        thread.join()
    os.unlink(f"{run_dir}/{other}.sock")
    assert got.returncode == 1 and f"'{other}'" in got.stderr, got
    assert [s["name"] for s in json.loads(got.stdout)] == ["s"], got
same("seen", [end(job)], alone)

# A share is watched until it ends.
job = start("--batch", "16", "--share", "s", "--epochs", "20", "--steps", "120",
            "--step-ms", "20")
wait_for("a step", lambda: view_from(1))
watch = subprocess.Popen([refrain, "share", "--watch", "s"], text=True,
                         stdout=subprocess.PIPE)
hosts = (line for line in watch.stdout if f"process {job.pid} hosts" in line)
assert next(hosts) and next(hosts)
end(job)
assert watch.wait(20 * patience) == 0

# A name that is not UTF-8.
job = start("--batch", "16", "--share", b"\xff", "--share-jobs", "2")
wait_for("the name", lambda: [s["name"] for s in share()] == ["\\xff"])
job.kill()
job.communicate()

# Only a killed host leaves its files behind, until the next host starts.
left = sorted(os.listdir(os.fsencode(run_dir)))
assert left == [b"\xff.lock", b"\xff.sock"], left
assert share() == []
job = start(*run, "--share", "t", "--share-jobs", "1")
wait_for("the files are gone", lambda: sorted(
    os.listdir(os.fsencode(run_dir))) == [b"t.lock", b"t.sock"])
end(job)
assert os.listdir(run_dir) == []
PY

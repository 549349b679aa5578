# SPDX-License-Identifier: MIT
"""Functions for tests of a mount with --analysis: send it commands, read its
files, and count an epoch."""
import json, os, socket, sys, time

mnt, src, patience = sys.argv[1], sys.argv[2], int(sys.argv[3])
# Without inotify the kernel keeps no pages.
keeps = not any(f in os.environ.get("REFRAIN_DISABLE", "")
                for f in ("all", "inotify"))
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(mnt, "user.refrain.control").decode())
lines = sock.makefile("rw")


def tell(cmd, **more):
    lines.write(json.dumps({"cmd": cmd, **more}) + "\n")
    lines.flush()
    return json.loads(lines.readline())


def asked(cmd, **more):
    reply = tell(cmd, **more)
    assert reply["ok"], reply
    return reply


def status(name):
    return asked("status")["status"][name]


names = [os.path.relpath(os.path.join(d, f), src)
         for d, _, files in os.walk(src) for f in files]
size = sum(os.path.getsize(os.path.join(src, n)) for n in names)


def read(top, n):
    with open(os.path.join(top, n), "rb") as f:
        return f.read()


def epoch(same=True):
    """Return the rates of one epoch. At its end the kernel has dropped all
    pages that it must not keep."""
    before, dropped = asked("rates"), status("pages_dropped")
    for n in names:
        got, want = read(mnt, n), read(src, n)
        assert len(got) == len(want), n
        assert not same or got == want, n
    until = time.monotonic() + 20 * patience
    while (asked("rates")["kept_bytes"] + status("pages_dropped") - dropped <
           size):
        assert time.monotonic() < until, "pages stay"
        time.sleep(0.01)
    after = asked("rates")
    return {k: after[k] - before[k] for k in after if k != "ok"}


# Number of tries, because the kernel sends a read again if a page is gone
# before its reader has run.
AGAIN = 5
count = len(names)


def about(n, least):
    return least <= n <= least + AGAIN

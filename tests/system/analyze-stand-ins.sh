#!/bin/sh
# SPDX-License-Identifier: MIT
#
# If a cache is too small for the dataset, cached images stand in for the other
# images, and the mask applies to them, too.
set -eu
name=analyze-stand-ins
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

"$refrain" make-dataset --classes 2 --images 60 --size 96x72 "$src" >/dev/null
printf 'not an image' >"$src/text"
start_mount "$src" "$mnt" --cache "$work/tier:200K" --analysis
scan_through
python3 - "$mnt" "$src" <<'PY' || fail "see above"
import json, os, socket, sys

mnt, src = sys.argv[1:3]
AGAIN = 5  # like AGAIN in analyze_mount.py
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(mnt, "user.refrain.control").decode())
lines = sock.makefile("rw")


def tell(cmd, **more):
    lines.write(json.dumps({"cmd": cmd, **more}) + "\n")
    lines.flush()
    return json.loads(lines.readline())


def read(top, n):
    """Read without the kernel's pages, so that the daemon answers."""
    fd = os.open(os.path.join(top, n),
                 os.O_RDONLY | (os.O_DIRECT if top == mnt else 0))
    with open(fd, "rb", buffering=0) as f:
        return f.readall()


names = [os.path.relpath(os.path.join(d, f), src)
         for d, _, files in os.walk(src) for f in files]
real = {n: read(src, n) for n in names}
images = [n for n in names if n.endswith(".jpg")]


def epoch():
    """Return the names of files that had the content of another file, and the
    counts of hits and stand-ins."""
    before = tell("rates")
    other = []
    for n in names:
        got = read(mnt, n)
        if got == real[n]:
            continue
        other.append(n)
        assert len(got) == len(real[n]), n
        # The content is another whole image, or a tiny one for the smallest
        # file, followed by zeros.
        size = [len(r) for r in real.values() if got.startswith(r)] or [305]
        assert not any(got[size[0]:]), n
    after = tell("rates")
    return other, *(after[k] - before[k] for k in ("hits", "stand_ins"))


# No image is cached yet that could stand in for another.
reply = tell("content", content="stand-in")
assert not reply["ok"] and "no JPEG" in reply["error"], reply
done = tell("warm")
while done.get("progress"):
    done = json.loads(lines.readline())
cached = done["cached_items"]
assert done["not_fitting_items"] > 10 < cached, done
assert epoch()[0] == []
reply = tell("content", content="stand-in")
assert reply["ok"] and cached - 1 <= reply["images"] <= cached, reply
other, hits, stood = epoch()
assert other and len(other) <= stood, other
rest = len(images) - reply["images"]
assert rest <= stood <= rest + AGAIN, (stood, reply)
assert len(images) <= hits <= len(names) + AGAIN, hits
assert "text" not in other
# The mask applies to stand-ins, too.
assert tell("mask", x=0)["ok"]
assert epoch() == ([], 0, 0)
assert tell("mask", x=0.5)["ok"]
some, hits, part = epoch()
assert 0 < part < stood and set(some) < set(other), (part, stood)
assert tell("mask", x=1)["ok"]
# Each image is tiny, cached or not.
assert tell("content", content="tiny")["ok"]
assert not any(any(read(mnt, n)[305:]) for n in images)
assert tell("content", content="real")["ok"]
assert epoch()[0::2] == ([], 0)
PY
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The commands of a mount with --analysis: a mask hides a share of what is
# cached and admits nothing, tiny images take the place of JPEGs, every read is
# counted, also those that the kernel answers. An ordinary mount refuses them.
set -eu
name=analysis
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3

"$refrain" make-dataset --classes 2 --images 60 --size 96x72 "$src" >/dev/null
printf 'not an image' >"$src/text"
head -c 110000 /dev/zero >"$src/long"
start_mount "$src" "$mnt" --cache "$work/tier:64M" --analysis
scan_through
"$refrain" warm "$mnt" >/dev/null

python3 - "$mnt" "$src" "$patience" <<'PY' || fail "see above"
import json, os, socket, sys, time

mnt, src, patience = sys.argv[1], sys.argv[2], int(sys.argv[3])
# Without inotify no pages stay.
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
    """The rates of one epoch; at its end the kernel has dropped what it is not
    to keep."""
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


# Programs are to read a file at once, and the kernel reads ahead.
assert os.stat(os.path.join(mnt, "long")).st_blksize == 32768
assert os.stat(os.path.join(mnt, "text")).st_blksize == 4096

count = len(names)
# The kernel asks again if a page is gone before its reader has run.
AGAIN = 5


def about(n, least):
    return least <= n <= least + AGAIN


entries = status("entries")
assert entries == count, entries
for x, least, most in (1, count, count), (0, 0, 0), (0.5, 15, 45):
    asked("mask", x=x)
    fetched = status("origin_bytes")
    r = epoch()
    assert x < 1 or status("origin_bytes") == fetched, status("origin_bytes")
    assert about(r["first_reads"], count) and r["bytes"] >= size, r
    assert least <= r["hits"] <= most + (AGAIN if x else 0), (x, r)
    assert r["hits"] + r["misses"] == r["first_reads"], r
    assert (r["starved_us"] > 0) == (x < 1), r
    assert r["parked_us"] >= r["starved_us"], r
    assert r["kept"] == 0, r
    # What the kernel keeps is the hits, and reads of it are counted once.
    kept = asked("rates")["kept_bytes"]
    assert x == 0.5 or kept == size * x * keeps, (x, kept)
    again = epoch()
    assert about(again["first_reads"], count), again
    assert again["hits"] + again["misses"] == again["first_reads"], again
    assert not keeps or least <= again["kept"], (x, again)
    assert again["kept"] <= again["hits"] <= most + AGAIN, (x, again)
    assert abs(again["hits"] - r["hits"]) <= AGAIN, (r, again)
    assert asked("rates")["kept_bytes"] == kept
assert status("entries") == entries and status("passed_through") > 0

# Where bytes are counted nothing is kept.
asked("mask", x=1, keep=False)
assert asked("rates")["kept_bytes"] == 0
epoch()
r = epoch()
assert r["kept"] == 0 and about(r["hits"], count), r
asked("mask", x=1, keep=True)

# Kept files that are opened twice a sample, that are held open from one epoch
# to the next, and whose readers drop their pages, so that the daemon is asked.
asked("mask", x=1)
epoch()
first = asked("rates")["first_reads"]
for n in names:
    read(mnt, n)
    read(mnt, n)
assert not keeps or about(asked("rates")["first_reads"], first + count)
held = {n: open(os.path.join(mnt, n), "rb", buffering=0) for n in names}
first = asked("rates")["first_reads"]
began = time.monotonic()
for f in held.values():
    f.read()
until = began + 1.1
while time.monotonic() < until:
    time.sleep(0.05)
for f in held.values():
    f.seek(0)
    assert f.read()
assert not keeps or about(asked("rates")["first_reads"], first + 2 * count)
for f in held.values():
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    f.close()
r = epoch()
assert about(r["first_reads"], count) and r["kept"] <= AGAIN, r

# Nothing is read for more than a second.
began = asked("rates")["time_us"]
while asked("rates")["time_us"] < began + 1.2e6:
    time.sleep(0.05)
r = epoch()
assert r["idle_us"] >= 1e6, r

# Files as they are may be late, too; no pages stay then, so each read is seen,
# and the times from one file to the next are counted.
asked("content", content="real-late", delay_us=3000)
before = asked("rates", intervals=True)
began = time.monotonic()
r = epoch()
assert about(r["first_reads"], count) and r["kept"] <= AGAIN, r
assert time.monotonic() - began > 0.003 * (r["first_reads"] - r["kept"]), r
after = asked("rates", intervals=True)
assert "intervals" not in asked("rates")


def lengths(reply):
    """Their number, and their sum in us."""
    return [sum(i[k] for i in reply["intervals"]) for k in (1, 2)]


n, total = (b - a for a, b in zip(lengths(before), lengths(after)))
assert about(n, count), n
total += after["delayed_us"] - before["delayed_us"]
assert 3000 * (n - 1) <= total, total
assert after["ran_us"] >= before["ran_us"]
for content in "tiny-late", "tiny":
    asked("content", content=content, delay_us=3000)
    began = time.monotonic()
    r = epoch(same=False)
    assert about(r["hits"], count) and r["misses"] == 0, r
    assert content == "tiny" or time.monotonic() - began > 0.003 * r["tiny"]
assert asked("rates")["readers"] == 1, asked("rates")  # this thread
# Pages of the same names, which hold what was answered last.
images = [read(mnt, n) for n in names if n.endswith(".jpg")]
assert {i[:305] for i in images} == {images[0][:305]}
assert images[0][303:305] == b"\xff\xd9" and not any(images[0][305:])
assert read(mnt, "text") == b"not an image"
asked("content", content="real")
for cmd, more in (("mask", {"x": 2}), ("mask", {}), ("content", {}),
                  ("content", {"content": "tiny-late"}),
                  ("keys", {"paths": []}), ("plan", {})):
    assert not tell(cmd, **more)["ok"], cmd
PY
stop_mount

# In a cache that is too small cached images stand in for the others.
rm -r "$work/tier" "$src/long"
start_mount "$src" "$mnt" --cache "$work/tier:200K" --analysis
scan_through
python3 - "$mnt" "$src" <<'PY' || fail "see above"
import json, os, socket, sys

mnt, src = sys.argv[1:3]
AGAIN = 5  # as above
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(mnt, "user.refrain.control").decode())
lines = sock.makefile("rw")


def tell(cmd, **more):
    lines.write(json.dumps({"cmd": cmd, **more}) + "\n")
    lines.flush()
    return json.loads(lines.readline())


def read(top, n):
    """Past the kernel's pages: what the daemon answers now."""
    fd = os.open(os.path.join(top, n),
                 os.O_RDONLY | (os.O_DIRECT if top == mnt else 0))
    with open(fd, "rb", buffering=0) as f:
        return f.readall()


names = [os.path.relpath(os.path.join(d, f), src)
         for d, _, files in os.walk(src) for f in files]
real = {n: read(src, n) for n in names}
images = [n for n in names if n.endswith(".jpg")]


def epoch():
    """Names of files with other content than theirs; hits and stand-ins."""
    before = tell("rates")
    other = []
    for n in names:
        got = read(mnt, n)
        if got == real[n]:
            continue
        other.append(n)
        assert len(got) == len(real[n]), n
        # Another image, whole, or for the smallest a tiny one; then zeros.
        size = [len(r) for r in real.values() if got.startswith(r)] or [305]
        assert not any(got[size[0]:]), n
    after = tell("rates")
    return other, *(after[k] - before[k] for k in ("hits", "stand_ins"))


# Nothing is cached yet that could stand in.
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
# The mask holds for stand-ins, too.
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
rm -r "$work/tier"

# A large file that is read by parts, its end first: each part is seen in each
# epoch, cached or not.
mkdir "$work/shards"
head -c 6M /dev/urandom >"$work/shards/one"
start_mount "$work/shards" "$mnt" --cache "$work/tier:64M" --analysis
scan_through
"$refrain" warm "$mnt" >/dev/null
python3 - "$mnt" "$patience" <<'PY' || fail "see above"
import json, os, socket, sys, time

mnt, patience = sys.argv[1], int(sys.argv[2])
sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(mnt, "user.refrain.control").decode())
lines = sock.makefile("rw")


def tell(cmd, **more):
    lines.write(json.dumps({"cmd": cmd, **more}) + "\n")
    lines.flush()
    return json.loads(lines.readline())


def wait_for_drop(total):
    until = time.monotonic() + 20 * patience
    while tell("status")["status"]["pages_dropped"] < total:
        assert time.monotonic() < until, "pages stay"
        time.sleep(0.01)


SIZE, PART = 6 << 20, 64 << 10
fd = os.open(mnt + "/one", os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for x in 1, 1, 0, 0:
    assert tell("mask", x=x)["ok"]
    before = tell("rates")["bytes"]
    dropped = tell("status")["status"]["pages_dropped"]
    # The end alone is dropped before the rest is read.
    for at in range(SIZE - PART, -1, -PART):
        assert len(os.pread(fd, PART, at)) == PART
        if at == SIZE - PART:
            wait_for_drop(dropped + PART)
    seen = tell("rates")["bytes"] - before
    # More if somebody has dropped the caches meanwhile.
    assert SIZE <= seen <= 1.1 * SIZE, (x, seen)
    wait_for_drop(dropped + SIZE)
PY
stop_mount
rm -r "$work/tier"

# An ordinary mount has no such commands.
start_mount "$src" "$mnt" --cache "$work/tier:64M"
python3 - "$mnt" <<'PY' || fail "see above"
import json, os, socket, sys

sock = socket.socket(socket.AF_UNIX)
sock.connect(os.getxattr(sys.argv[1], "user.refrain.control").decode())
lines = sock.makefile("rw")
for cmd in '{"cmd":"mask","x":0}', '{"cmd":"content","content":"tiny"}', \
        '{"cmd":"content","content":"stand-in"}', \
        '{"cmd":"rates"}':
    lines.write(cmd + "\n")
    lines.flush()
    reply = json.loads(lines.readline())
    assert not reply["ok"] and "--analysis" in reply["error"], reply
PY
stop_mount
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with trainers that it cannot analyse: each is refused in one
# line, without figures. And with unusual ones that it can.
set -eu
name=analyze-odd
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 timeout
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
export XDG_CACHE_HOME TMPDIR
mkdir "$TMPDIR" "$work/fast" "$work/shards" "$work/records"

"$refrain" make-dataset --classes 2 --images 200 --size 128x96 "$src" >/dev/null
tar cf "$work/shards/a.tar" -C "$src" .
# Several: an epoch must be longer than pages stay.
for shard in b c d e f g h; do
	cp "$work/shards/a.tar" "$work/shards/$shard.tar"
done
mkdir "$work/large"
head -c 1M /dev/urandom >"$work/large/a"
cp "$work/large/a" "$work/large/b"

mkdir "$work/small"
head -c 100K /dev/urandom | tee "$work/small/a" "$work/small/b" \
	>"$work/small/c"

mkdir "$work/medium"
head -c 6000000 /dev/urandom | split -b 100000 - "$work/medium/"

cat >"$work/trainer.py" <<'PY'
import mmap, os, sys, threading, time

how, top = sys.argv[1:]
names = [os.path.join(d, f) for d, _, files in os.walk(top) for f in files]
kept = {}


def reads_all(names):
    """An epoch after the other, with a little work for each 64 KiB."""
    while True:
        for name in names:
            with open(name, 'rb', buffering=0) as f:
                while f.read(65536):
                    time.sleep(0.05 if how == 'threads' else 0.004)


if how == 'threads':
    for n in range(63):
        threading.Thread(target=reads_all, args=(names[n::64],)).start()
    reads_all(names[63::64])
elif how == 'compiles':
    # It reads a list and the first batch before that.
    for name in names[:8]:
        with open(name, 'rb') as f:
            f.read()
    time.sleep(4)
if how in ('all', 'compiles'):
    reads_all(names)
while True:
    for name in names:
        if name in kept:
            sum(kept[name][::4096])
            continue
        with open(name, 'rb', buffering=0) as f:
            if how == 'maps':
                kept[name] = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
                sum(kept[name][::4096])
            elif how == 'half':
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                f.read(300000)
            else:
                kept[name] = f.read()
PY

timeout $((180 * patience)) python3 - "$refrain" "$src" "$work" "$patience" \
	<<'PY' || fail "see above"
import json, os, signal, struct, subprocess, sys

refrain, src, work, patience = sys.argv[1:5]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def tfrecord(size):
    length = struct.pack("<Q", size)
    crc = crc32c(length)
    crc = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
    return length + struct.pack("<I", crc) + os.urandom(size) + bytes(4)


# A few files, each of many records of 4 KiB.
for n in range(8):
    with open(f"{work}/records/train-{n}.tfrecord", "wb") as f:
        f.write(tfrecord(4096) * 256)


def is_fetch(p):
    """A machine with much other work may leave it undecided."""
    return p["likely"] == "fetch" and p["bottleneck"] in ("fetch", "undecided")


def analyze(source, *command, options=(), shell=()):
    return subprocess.Popen(
        [*shell, refrain, "analyze", "--cache", work + "/fast",
         "--seconds", "2", "--start", "30", "--json", *options, source,
         "--", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trainer(how, source="{}"):
    return [sys.executable, work + "/trainer.py", how, source]


refused = [
    (analyze(src, "sh", "-c", "exit 5", "{}"), "failed with status 5"),
    (analyze(src, "sh", "-c", "kill -9 $$", "{}"), "failed with signal 9"),
    (analyze(src, "sh", "-c", "cat {}/*/* >/dev/null"), "ended during"),
    (analyze(src, "sh", "-c", "while :; do cat $0/* >/dev/null; done",
             work + "/large", "{}", options=["--start", "2"]),
     "read nothing"),
    (analyze(src, *trainer("maps")), "maps files"),
    (analyze(src, *trainer("keeps"), options=["--start", "9"]),
     "stopped reading"),
    (analyze(work + "/large", *trainer("half"), options=["--start", "9"]),
     "of each file"),
    (analyze(work + "/small", "sh", "-c",
             "while :; do cat {}/* >/dev/null; done"), "larger dataset"),
    (analyze(work + "/records", *trainer("all"),
             options=["--cache-size", "2M"]), "does not fit"),
]
for p, why in refused:
    out, err = p.communicate(timeout=150 * int(patience))
    said = [s for s in err.splitlines() if s.startswith("refrain: analyze:")]
    assert p.returncode == 1 and not out and len(said) == 1, (why, out, err)
    assert why in said[0], (why, said)
    print(said[0])

many = analyze(src, *trainer("threads"), options=["--fault", "rate=1M"])
tar = analyze(work + "/shards", *trainer("all"),
              options=["--samples", "1600", "--fault", "rate=8M"])
records = analyze(work + "/records", *trainer("all"),
                  options=["--fault", "rate=8M"])
# Nothing is read for four times as long as a segment takes.
late = analyze(src, *trainer("compiles"),
               options=["--fault", "rate=400K", "--no-tiny"])
# Half of it fits the copy.
part = analyze(src, *trainer("all"),
               options=["--fault", "rate=400K", "--cache-size", "800K"])
# For the rest there is no time.
brief = analyze(src, *trainer("all"),
                options=["--fault", "rate=100K", "--copy", "4", "--no-tiny"])
# An epoch takes 0.3 s: short, but pages of few files stay meanwhile.
short = analyze(work + "/medium", "sh", "-c",
                "while :; do cat {}/* >/dev/null; done",
                options=["--fault", "rate=20M", "--no-tiny"])
# Processes in sessions of their own, as torchrun's workers are: one reads, and
# one would stay. The shell waits for the first.
away = analyze(src, "sh", "-c", "setsid sh -c 'echo $$ >$3; exec sleep 600' "
               "x x x $3 & setsid -w $0 $1 all $2", sys.executable,
               work + "/trainer.py", "{}", work + "/away",
               options=["--no-tiny"],
               # This one was there before, and is to stay.
               shell=["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >$0; "
                      'exec "$@"', work + "/mine"])
# What each of 64 threads can do with a rest of 50 ms a file, and less.
for p, samples, most, unit in ((many, 200, 1300, "samples"),
                               (tar, 1600, 1e9, "samples"),
                               (records, 8.421376, 1e9, "MB")):
    out, err = p.communicate(timeout=150 * int(patience))
    assert p.returncode == 0, (unit, samples, err)
    p = json.loads(out)
    assert p["source"]["samples"] == samples, p
    assert p["source"]["unit"] == unit, p
    assert p["R0"]["value"] < p["G"]["value"] < most, p
    assert is_fetch(p) and p["R0"]["value"] > 0, p
    # The source is the limit: its bytes a second, in samples; roughly, as
    # several analyses run at once.
    bytes_s = p["R0"]["value"] * p["source"]["bytes"] / samples
    limit = 1 << (20 if samples == 200 else 23)
    assert 0.3 < bytes_s / limit < 3, (bytes_s, limit)
assert any("no JPEG" in n for n in p["notes"]), p["notes"]
assert any("TFRecord files hold several" in n for n in p["notes"]), p["notes"]
out, err = part.communicate(timeout=150 * int(patience))
assert part.returncode == 0, err
p = json.loads(out)
assert any("dataset was copied" in n for n in p["notes"]), p["notes"]
assert p["points"][0]["miss"] == 0 and p["points"][-1]["miss"] == 1, p
assert is_fetch(p), p
out, err = brief.communicate(timeout=150 * int(patience))
assert brief.returncode == 0, err
p = json.loads(out)
assert any("dataset was copied" in n for n in p["notes"]), p["notes"]
assert is_fetch(p), p
out, err = short.communicate(timeout=150 * int(patience))
assert short.returncode == 0, err
p = json.loads(out)
assert 30 < p["R0"]["value"] < 300 < p["R1"]["value"], p
out, err = late.communicate(timeout=150 * int(patience))
assert late.returncode == 0, err
assert is_fetch(json.loads(out)), out
out, err = away.communicate(timeout=150 * int(patience))
assert away.returncode == 0, err
assert json.loads(out)["cpus_used"] > 0, out
with open(work + "/away") as f:
    assert not os.path.exists("/proc/" + f.read().strip()), "it was left"
with open(work + "/mine") as f:
    os.kill(int(f.read()), signal.SIGTERM)  # an error if it has ended
left = os.listdir(work + "/tmp") + os.listdir(work + "/fast")
assert not left, left
PY
[ -z "$(mounts_below "$work")" ] || fail "mounts are left"
echo PASS

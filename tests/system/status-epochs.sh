#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The epochs in refrain status, with a slow source: the number, the share that
# is done, the expected hits, and a range for the time of an epoch with a larger
# cache, which is measured at the same time. If the kernel's pages answer, it
# says nothing.
set -eu
name='status-epochs'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 timeout

cat >"$work/epochs.py" <<'PY'
import json, os, random, subprocess, sys, threading, time

refrain, src, work, patience = *sys.argv[1:4], int(sys.argv[4])
FILES, BYTES, CHARGED = 300, 40000, 40960
EPOCHS = 3
LIMIT = 20 * patience
random.seed(5)
for i in range(FILES):
    with open(f"{src}/{i}", "wb") as f:
        f.write(random.randbytes(BYTES))


class Mount:
    """A mount that can cache `cached` files, and its trainer."""

    def __init__(self, name, cached, *options):
        self.top = f"{work}/{name}.mnt"
        os.mkdir(self.top)
        self.daemon = subprocess.Popen(
            [refrain, "mount", "--foreground", src, self.top, "--cache",
             f"{work}/{name}.tier:{cached * CHARGED}", "--fault",
             "delay=10ms", *options])
        self.order = list(range(FILES))
        self.times = []
        until = time.monotonic() + LIMIT
        while not os.path.ismount(self.top) or \
                self.status()["scan"] != "complete":
            assert time.monotonic() < until and self.daemon.poll() is None
            time.sleep(0.01)

    def show(self, *how):
        return subprocess.run([refrain, "status", self.top, *how], text=True,
                              stdout=subprocess.PIPE, check=True).stdout

    def status(self):
        return json.loads(self.show("--json"))

    def begin(self):
        """Begin an epoch."""
        random.shuffle(self.order)
        self.todo = iter(self.order)
        self.done = 0
        self.began = time.monotonic()
        self.workers = [threading.Thread(target=self.work) for _ in "ab"]
        for w in self.workers:
            w.start()

    def work(self):
        """Read and prepare samples. Both threads take them from one
        iterator, which is safe because next() is not interrupted."""
        for i in self.todo:
            with open(f"{self.top}/{i}", "rb", buffering=0) as f:
                f.readall()
            time.sleep(0.003)
            self.done += 1
        self.ended = time.monotonic()

    def goes_on(self):
        return any(w.is_alive() for w in self.workers)

    def end(self):
        for w in self.workers:
            w.join()
        self.times.append(self.ended - self.began)

    def forget(self):
        """Make the kernel drop the names and pages of the mount."""
        subprocess.run(["mount", "-i", "-o", "remount,ro", self.top],
                       check=True)

    def close(self):
        subprocess.run([refrain, "umount", self.top], check=True)
        assert self.daemon.wait() == 0


def check(small, epoch, s, before):
    """Check that the report in an epoch agrees with the reads; `before` is
    the share that was read before the request."""
    after = small.done / FILES
    assert s["epoch"] == epoch, s
    # The report gives the share of the epoch by its misses.
    assert before - 0.15 < s["epoch_done_pct"] / 100 < after + 0.15, \
        (before, after, s)
    expected = 0 if epoch == 1 else 100 / 3
    assert abs(s["epoch_expected_hits_pct"] - expected) < 3, s
    if "epoch_hits_pct" in s:
        # five standard deviations of a random draw of that many files
        chance = 5 * 47 * max((1 - before) / before / FILES, 0) ** 0.5
        assert abs(s["epoch_hits_pct"] - expected) < 4 + chance, (before, s)
    assert 0 < s["epoch_waited_pct"] <= 100, s


def drops():
    """Return how often the kernel's caches were dropped. After a drop, the
    kernel does not answer reads of the mounts that must report nothing."""
    with open("/proc/vmstat") as f:
        return next(s for s in f if s.startswith("drop_pagecache"))


# The kernel has no pages of this mount when an epoch begins, as with a dataset
# that is larger than memory.
small = Mount("small", FILES // 3, "--pages", "64K")
larger = Mount("larger", FILES * 2 // 3)
kept = Mount("kept", FILES // 3)
some = Mount("some", FILES // 3)
ranges, shown = [], ""
dropped = drops()
watched = open(f"{work}/watched", "w+")
watch = subprocess.Popen([refrain, "status", "--watch", small.top],
                         stdout=watched)
for epoch in range(1, EPOCHS + 1):
    for m in small, larger:
        m.forget()
    # Read half of the files, so that the shares of hits and misses stay the
    # same.
    for i in random.sample(range(FILES), FILES // 2):
        with open(f"{some.top}/{i}", "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    for m in small, larger, kept, some:
        m.begin()
    told = 0
    while small.goes_on():
        before = small.done / FILES
        s = small.status()
        if before > 0.1 and small.goes_on() and "epoch_done_pct" in s:
            check(small, epoch, s, before)
            told += 1
            if "epoch_ms" in s:
                ranges.append(s)
        assert "epoch_ms" not in s or epoch > 1, s
        begun = some.done > 0.2 * FILES
        said = some.status(), kept.status()
        if drops() == dropped:
            assert epoch == 1 or not begun or \
                "epoch_waited_pct" not in said[0], said[0]
            # It may report only the first epoch, which it has seen completely.
            assert said[1].get("epoch", 1) == 1, said[1]
        if epoch == 3 and not shown and "epoch_ms" in s:
            shown = small.show()
            prometheus = small.show("--prometheus")
    assert told, f"nothing was said in epoch {epoch}"
    for m in small, larger, kept, some:
        m.end()
print(shown)
assert "  epoch     3, " in shown and " cached: " in shown, shown
assert "\nrefrain_epoch{" in prometheus, prometheus
watch.kill()
watch.wait()
watched.seek(0)
assert any(s.startswith("  epoch") and "% done" in s for s in watched)
until = time.monotonic() + LIMIT
while "epoch_waited_pct" in kept.status():
    assert time.monotonic() < until, "idle, or in the kernel: who knows?"
    time.sleep(0.1)
assert "  epoch" not in kept.show()
assert "refrain_epoch" not in kept.show("--prometheus")

s = min(ranges, key=lambda s: s["epoch_ms"])
got = 1000 * min(larger.times[1:])
print({k: v for k, v in s.items() if "epoch" in k or "larger" in k
       or "whole" in k}, "small", small.times, "larger", larger.times)
assert abs(s["larger_cache_bytes"] / (BYTES * FILES) - 2 / 3) < 0.03, s
assert abs(s["whole_cache_bytes"] / (BYTES * FILES) - 1) < 0.03, s
assert s["larger_cache_least_ms"] < 0.9 * s["epoch_ms"], s
assert s["larger_cache_least_ms"] * 0.9 < got < s["larger_cache_most_ms"], \
    (got, s)
for m in small, larger, kept, some:
    m.close()
PY
timeout $((60 * patience)) python3 "$work/epochs.py" "$refrain" "$src" \
	"$work" "$patience" || fail "see above"
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount with --analysis serves the content that a command selects: files that
# are late, whose times are counted, or tiny images in place of JPEGs. A pause
# does not count as time of a reader, and an invalid command is refused.
set -eu
name=analyze-contents
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-mount-lib.sh
. "$(dirname "$0")/analyze-mount-lib.sh"

ask_mount <<'PY'
import time

from analyze_mount import (AGAIN, about, asked, count, epoch, mnt, names, read,
                           tell)

asked("mask", x=1)
epoch()

# No file is read for more than a second.
began = asked("rates")["time_us"]
while asked("rates")["time_us"] < began + 1.2e6:
    time.sleep(0.05)
r = epoch()
assert r["idle_us"] >= 1e6, r

# Files with their own content may be late, too. In this case no pages stay in
# the kernel, so the daemon gets each read, and counts the times between files.
asked("content", content="real-late", delay_us=3000)
before = asked("rates", intervals=True)
began = time.monotonic()
r = epoch()
assert about(r["first_reads"], count) and r["kept"] <= AGAIN, r
assert time.monotonic() - began > 0.003 * (r["first_reads"] - r["kept"]), r
after = asked("rates", intervals=True)
assert "intervals" not in asked("rates")


def lengths(reply):
    """Return the number of times, and their sum in us."""
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
# the reader is this thread
assert asked("rates")["readers"] == 1, asked("rates")
# The kernel must not use pages with these names, which have the previous
# content.
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

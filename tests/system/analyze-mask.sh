#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mask of a mount with --analysis hides a share of the cached items, and no
# item is admitted. Every read is counted, even if the kernel answers it.
set -eu
name=analyze-mask
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-mount-lib.sh
. "$(dirname "$0")/analyze-mount-lib.sh"

ask_mount <<'PY'
from analyze_mount import AGAIN, about, asked, count, epoch, keeps, size, status

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
    # The kernel keeps exactly the pages of hits, and reads of them are counted
    # once.
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

# With keep=False, the kernel keeps no pages, and bytes are counted.
asked("mask", x=1, keep=False)
assert asked("rates")["kept_bytes"] == 0
epoch()
r = epoch()
assert r["kept"] == 0 and about(r["hits"], count), r
PY
stop_mount

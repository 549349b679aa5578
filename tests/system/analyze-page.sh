#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze: a saved profile gives a page of HTML, with a table for each
# plot, and the same advice as the text.
set -eu
name=analyze-page
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import json, xml.dom.minidom

from analyze_run import analyze, end, slow_loader, work

profile = work + "/profile.json"
status, text, err = end(slow_loader(profile))
assert status == 0, err
with open(profile) as f:
    decided = json.load(f)["bottleneck"] == "fetch"
again = end(analyze("--from", profile, "--html", work + "/page.html"))
assert again == (0, text, ""), again
with open(work + "/page.html") as f:
    page = f.read()
xml.dom.minidom.parseString(page.replace("<!DOCTYPE html>", ""))
assert len(page) < 200000 and "fetch" in page and page.count("<svg") == 6
# Each plot has a table; the table of rates is open.
assert page.count("<details") == 5 and page.count("<table") == 7, page
# Page and text give the same first advice.
first = "First reduce the wait" if decided else "First measure again for longer"
assert all(first in t for t in (text, page)), text
assert not any(s in page for s in ("http", "src=", "href", "url(", "script"))
PY

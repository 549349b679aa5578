#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze shows the words of the command in the profile, even if they
# are not UTF-8, and cuts a long command.
set -eu
name=analyze-words
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import json

from analyze_run import end, slow_loader, work

profile = work + "/profile.json"
# A word that is not UTF-8, and more words than the profile shows.
shell = ["sh", "-c", 'shift; exec "$@"', b"\xe9", "é" * 300]
status, _, err = end(slow_loader(profile, shell))
assert status == 0, err
with open(profile) as f:
    p = json.load(f)
assert p["command"].startswith("sh -c shift; exec"), p["command"]
assert r" \xe9 " + 100 * "é" in p["command"], p["command"]
assert p["command"].endswith("é"), p["command"]
assert abs(sum(p["shares"].values()) - 100) < 1e-6, p["shares"]
PY

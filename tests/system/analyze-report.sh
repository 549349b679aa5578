#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze of a loader behind a slow source: the report and the profile.
# The saved profile gives the same report again.
set -eu
name=analyze-report
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import json

from analyze_run import analyze, end, slow_loader, slower, work

profile = work + "/profile.json"
status, text, err = end(slow_loader(profile))
assert status == 0, err
print(text)
assert len(text.splitlines()) <= 40
with open(profile) as f:
    saved = f.read()
p = json.loads(saved)
# On a busy machine the bottleneck may be undecided.
decided = p["bottleneck"] == "fetch"
assert decided or p["bottleneck"] == "undecided", p
assert (p["verdict"], p["likely"]) == ("highly", "fetch"), p
# The source gives 80 samples a second, the trainer takes 800. On a busy machine
# the trainer takes fewer, and after a pause the source gives more.
assert 20 < slower * p["R0"]["value"] < 160, p["R0"]
assert 1.3 * p["R0"]["value"] < p["R1"]["value"], p["R1"]
assert p["R1"]["value"] - p["R1"]["ci"] < 900, p["R1"]
assert p["G"]["bound"] and 0.3 < p["enough_share"] < 1, p
actions = {q["name"]: q["epoch_s"] for q in p["actions"]}
assert actions["a source twice as fast"] < 0.9 * actions["nothing changed"]
assert actions["everything cached"] < 0.9 * actions["nothing changed"], actions
assert any("librefrain through the mount" in n for n in p["notes"]), p["notes"]
assert len(p["series"]) > 5 and p["P"] >= p["R1"]["value"], p["series"]
misses = {q["x"]: q["miss"] for q in p["points"]}
# No point between is measured if the two rates could differ by chance.
assert misses[0] == 1 and misses[1] == 0 and len(misses) in (2, 5), misses
again = end(analyze("--from", profile))
assert again == (0, text, ""), again
again = end(analyze("--from", profile, "--json"))
assert again == (0, saved + "\n", ""), again
half = json.loads(end(analyze("--from", profile, "--json", "--cached",
                              "50%"))[1])
assert half["cache"] == 0.5
assert half["shares"]["fetch_pct"] < p["shares"]["fetch_pct"], half
assert decided != ("VERDICT: undecided" in text), text
PY

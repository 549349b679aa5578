#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with room for half of the dataset in the temporary copy:
# cached images stand in for the rest.
set -eu
name=analyze-copy-part
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
from analyze_run import brief, is_fetch, profile_of, src, trainer

p = profile_of(brief(src, *trainer("all"), options=[
    "--fault", "rate=400K", "--cache-size", "800K"]))
assert any("dataset was copied" in n for n in p["notes"]), p["notes"]
assert p["points"][0]["miss"] == 0 and p["points"][-1]["miss"] == 1, p
assert is_fetch(p), p
PY

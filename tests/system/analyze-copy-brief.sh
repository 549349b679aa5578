#!/bin/sh
# SPDX-License-Identifier: MIT
# refrain analyze with a time limit for copying: only a part of the dataset is
# copied.
set -eu
name=analyze-copy-brief
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
from analyze_run import brief, is_fetch, profile_of, src, trainer

p = profile_of(brief(src, *trainer("all"), options=[
    "--fault", "rate=100K", "--copy", "4", "--no-tiny"]))
assert any("dataset was copied" in n for n in p["notes"]), p["notes"]
assert is_fetch(p), p
PY

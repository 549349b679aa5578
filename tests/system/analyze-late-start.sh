#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with a trainer that reads a batch, and then nothing for four
# times as long as a segment takes.
set -eu
name=analyze-late-start
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
from analyze_run import brief, is_fetch, profile_of, src, trainer

p = profile_of(brief(src, *trainer("compiles"),
                     options=["--fault", "rate=400K", "--no-tiny"]))
assert is_fetch(p), p
PY

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with a trainer of 64 threads: the source is the limit.
set -eu
name=analyze-threads
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
from analyze_run import brief, has_a_limit, profile_of, src, trainer

# The maximum is the rate of 64 threads that rest for 50 ms after each file.
has_a_limit(profile_of(brief(src, *trainer("threads"),
                             options=["--fault", "rate=1M"])),
            200, 1300, "samples", 1 << 20)
PY

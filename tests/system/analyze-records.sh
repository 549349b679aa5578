#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze of TFRecord files, which hold several samples each: the source
# is the limit, in megabytes.
set -eu
name=analyze-records
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
from analyze_run import brief, has_a_limit, make_records, profile_of, trainer

p = profile_of(brief(make_records(), *trainer("all"),
                     options=["--fault", "rate=8M"]))
has_a_limit(p, 8.421376, 1e9, "MB", 1 << 23)
assert any("no JPEG" in n for n in p["notes"]), p["notes"]
assert any("TFRecord files hold several" in n for n in p["notes"]), p["notes"]
PY

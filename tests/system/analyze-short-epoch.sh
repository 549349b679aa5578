#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze with epochs of 0.3 s. They are short, but the kernel keeps the
# pages of few files during an epoch.
set -eu
name=analyze-short-epoch
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

mkdir "$work/medium"
head -c 6000000 /dev/urandom | split -b 100000 - "$work/medium/"

analyses <<'PY'
from analyze_run import brief, profile_of, work

p = profile_of(brief(work + "/medium", "sh", "-c",
                     "while :; do cat {}/* >/dev/null; done",
                     options=["--fault", "rate=20M", "--no-tiny"]))
assert 30 < p["R0"]["value"] < 300 < p["R1"]["value"], p
PY

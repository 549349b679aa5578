#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze refuses options, sources and files that would make a
# measurement useless before it measures anything.
set -eu
name=analyze-refused-options
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os

from analyze_run import analyze, refused, src, work

ran = src, "--", "touch", work + "/ran", "{}"
refused([
    (analyze("synthetic:files=4,size=64K", "--", "cat", "x"), "write {}"),
    (analyze("--from", src + "/none"), "cannot read"),
    (analyze(src + "/none", "--", "true"), "No such file"),
    (analyze("--cached", "half", *ran), "not a valid size"),
    (analyze("--html", work + "/none/page", *ran), "cannot write"),
    (analyze("--profile", work, *ran), "cannot write"),
])
assert not os.path.exists(work + "/ran")
PY

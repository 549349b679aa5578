#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze names in one line, without figures, why a trainer cannot be
# analysed.
set -eu
name=analyze-refused
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

mkdir "$work/large" "$work/small"
head -c 1M /dev/urandom >"$work/large/a"
cp "$work/large/a" "$work/large/b"
head -c 100K /dev/urandom | tee "$work/small/a" "$work/small/b" \
	>"$work/small/c"

analyses <<'PY'
from analyze_run import analyze, brief, make_records, refused, src, trainer
from analyze_run import work

refused([
    (analyze(src, "--", "true", "{}"), "ended during"),
    (analyze(src, "--", work + "/none", "{}"), "cannot run"),
    (analyze("--start", "1", src, "--", "sh", "-c", "exec sleep 60", "{}"),
     "read nothing"),
    (brief(src, "sh", "-c", "exit 5", "{}"), "failed with status 5"),
    (brief(src, "sh", "-c", "kill -9 $$", "{}"), "failed with signal 9"),
    (brief(src, "sh", "-c", "cat {}/*/* >/dev/null"), "ended during"),
    (brief(src, "sh", "-c", "while :; do cat $0/* >/dev/null; done",
           work + "/large", "{}", options=["--start", "2"]),
     "read nothing"),
    (brief(src, *trainer("maps")), "maps files"),
    (brief(src, *trainer("keeps"), options=["--start", "9"]),
     "stopped reading"),
    (brief(work + "/large", *trainer("half"), options=["--start", "9"]),
     "of each file"),
    (brief(work + "/small", "sh", "-c",
           "while :; do cat {}/* >/dev/null; done"), "larger dataset"),
    (brief(make_records(), *trainer("all"), options=["--cache-size", "2M"]),
     "does not fit"),
])
PY

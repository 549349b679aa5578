#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze writes through a link and into a FIFO, replaces a file with
# its permissions, and writes the profile even if the reader of the report has
# ended.
set -eu
name=analyze-output
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

analyses <<'PY'
import os, subprocess

from analyze_run import analyze, end, patience, refrain, slow_loader, work

profile = work + "/profile.json"
status, text, err = end(slow_loader(profile))
assert status == 0, err
with open(profile) as f:
    saved = f.read()
again = end(analyze("--from", profile, "--html", work + "/page.html"))
assert again == (0, text, ""), again
with open(work + "/page.html") as f:
    page = f.read()

os.mkdir(work + "/out")
os.symlink("target", work + "/out/link")
os.mkfifo(work + "/out/fifo")
reader = subprocess.Popen(["cat", work + "/out/fifo"], stdout=subprocess.PIPE,
                          text=True)
again = end(analyze("--from", profile, "--html", work + "/out/fifo"))
assert again == (0, text, ""), again
assert reader.communicate(timeout=10 * patience)[0] == page
again = end(analyze("--from", profile, "--html", work + "/out/link",
                    "--profile", work + "/out/link/none"))
assert again[0] == 1 and "cannot write" in again[2], again
assert len(os.listdir(work + "/out")) == 2, os.listdir(work + "/out")
again = end(analyze("--from", profile, "--html", work + "/out/link"))
assert again == (0, text, ""), again
with open(work + "/out/target") as f:
    assert os.path.islink(work + "/out/link") and f.read() == page
# The profile is written even if the reader of the report has ended.
with open(work + "/out/saved", "w") as f:
    os.fchmod(f.fileno(), 0o640)
gone, out = os.pipe()
os.close(gone)
status = subprocess.call([refrain, "analyze", "--from", profile, "--json",
                          "--profile", work + "/out/saved"], stdout=out)
os.close(out)
assert status != 0
with open(work + "/out/saved") as f:
    assert f.read() == saved and os.fstat(f.fileno()).st_mode & 0o777 == 0o640
assert len(os.listdir(work + "/out")) == 4, os.listdir(work + "/out")
PY

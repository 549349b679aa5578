#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze of files that hold several samples each, whose number is
# given: the source is the limit, in samples.
set -eu
name=analyze-shards
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/analyze-lib.sh
. "$(dirname "$0")/analyze-lib.sh"

mkdir "$work/shards"
tar cf "$work/shards/a.tar" -C "$src" .
# Several shards, because an epoch must be longer than pages stay in the kernel.
for shard in b c d e f g h; do
	cp "$work/shards/a.tar" "$work/shards/$shard.tar"
done

analyses <<'PY'
from analyze_run import brief, has_a_limit, profile_of, trainer, work

p = profile_of(brief(work + "/shards", *trainer("all"),
                     options=["--samples", "1600", "--fault", "rate=8M"]))
has_a_limit(p, 1600, 1e9, "samples", 1 << 23)
PY

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An object that is overwritten a thousand times under readers: each read gets
# bytes of one version, and the last version shows in time.
set -u
name=s3-overwritten
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
requires fuse curl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/s3-safety-lib.sh
. "$(dirname "$0")/s3-safety-lib.sh"

far_put over/file a
s3_mount over --revalidate 1 --timeout 5
scan_through
python3 - "$far/over/file" "$work/puts" "${OVERWRITES:-1000}" <<'END'
import sys
url, to, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
for c in "abcdefghijklmnopqrstuvwxyz":
    with open(f"{to}.{c}", "w") as f:
        f.write(c * 100000)
with open(to, "w") as f:
    for i in range(n):
        last = i == n - 1
        c = "z" if last else chr(ord("a") + i % 25)
        f.write(f'url={url}\nrequest=PUT\ndata-binary="@{to}.{c}"\n')
        if not last:
            f.write("next\n")
END
python3 - "$mnt/file" "$work/written" <<'END' &
import os, sys
reads = right = 0
while not os.path.exists(sys.argv[2]):
    try:
        with open(sys.argv[1], "rb", buffering=0) as f:
            got = b""
            while piece := f.read(65536):
                got += piece
    except OSError:
        continue
    reads += 1
    if len(set(got)) > 1:
        sys.exit("a mixture")
    right += len(got) in (1, 100000)
sys.exit(0 if reads == right else f"{right} of {reads} whole")
END
reading=$!
curl -sf -K "$work/puts" || fail 'cannot overwrite'
expect overwrites "$(far_count puts)" "$((${OVERWRITES:-1000} + 1))"
fresh() {
	[ "$(head -c 1 "$mnt/file" 2>/dev/null)" = z ]
}
wait_for 20 fresh || fail 'stale beyond the bound'
: >"$work/written"
wait $reading || fail 'a reader saw what never was'
end_mount
! grep -rqaE 'Secret/|token/of' "$work"/daemon.*.err ||
	fail 'a secret is in the log'

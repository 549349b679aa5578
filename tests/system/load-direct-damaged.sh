#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Entries of the tier that were damaged, and files that changed: a loader that
# opens entries itself does not use them, and its samples are right.
set -eu
name=load-direct-damaged
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 timeout
# shellcheck source=tests/system/load-mount-lib.sh
. "$(dirname "$0")/load-mount-lib.sh"

bare
warm_mount

# damage SEED: damage 60 entries.
damage() {
	python3 - "$work/tier" "$1" <<'END'
import os, random, sys

def name_bytes(path):
    return int(path.rsplit('-', 1)[1])

top = sys.argv[1]
rng = random.Random(int(sys.argv[2]))
files = sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs
               if '-' in f and len(f) > 33)
files = [f for f in files
         if not os.path.islink(f) and os.path.getsize(f) > name_bytes(f)]
bad = rng.sample(files, 60)
for n, path in enumerate(bad):
    size = os.path.getsize(path)
    content = name_bytes(path)
    if n % 6 == 0:
        os.truncate(path, rng.randrange(size))
    elif n % 6 == 1:
        with open(path, 'ab') as f:
            f.write(b'x')
    elif n % 6 == 2:
        os.unlink(path)
        os.symlink(files[0], path)
    elif n % 6 == 3:
        os.unlink(path)
    else:
        at = rng.randrange(content) if n % 6 == 4 else \
            rng.randrange(content, size)
        with open(path, 'r+b') as f:
            f.seek(at)
            old = f.read(1)
            f.seek(at)
            f.write(bytes([old[0] ^ 1]))
END
}
# An answer may be late here, too. Entries that were damaged before may still be
# damaged.
for try in 1 2 3; do
	damage $try || fail 'cannot damage the tier'
	same 'damaged entries'
	hits=$(value direct_hits)
	[ "$hits" -lt $((2 * images)) ] || fail 'damaged entries were taken'
	[ "$hits" -lt $((2 * (images - 60 * try))) ] || break
	note "damaged entries, run $try: only $hits direct hits"
done
[ "$hits" -ge $((2 * (images - 60 * try))) ] || fail "only $hits direct hits"

# -- A file that changes
changed=$(find "$src/train" -name '*.jpg' | sort | head -n 1)
other=$(find "$src/train" -name '*.jpg' | sort | tail -n 1)
cp "$other" "$changed"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
load "$src/train" --epochs 2 --echo 2
[ "$(value pixel_hash)" != "$want" ] || fail 'the change changes nothing'
want=$(value pixel_hash)
same 'a changed file'
stop_mount

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Damaged examples in a directory and in a tar are counted, and substituted or
# filled with zeros, in the same way with any number of threads; or the run
# ends.
set -eu
name=load-damage
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

cp -r "$data" "$work/damaged"
python3 - "$work/damaged" <<'END' || fail 'cannot damage the dataset'
import os, random, sys

top = sys.argv[1]
files = sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs)
random.seed(1)
bad = random.sample(files, 6)


def put(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def get(path):
    with open(path, 'rb') as f:
        return f.read()


def sized(data, height, width):
    at = data.index(b'\xff\xc0') + 5
    return data[:at] + bytes([height >> 8, height & 255, width >> 8,
                              width & 255]) + data[at + 4:]


put(bad[0], b'')
put(bad[1], get(bad[1])[:100])
put(bad[2], random.randbytes(3000))
put(bad[3], b'<!DOCTYPE html>\n<html><title>404</title></html>\n')
put(bad[4], sized(get(bad[4]), 65500, 65500))
put(bad[5], b'GIF89a' + bytes(100))
END
data=$work/damaged
want=
for t in 1 4; do
	about="damage, $t threads"
	load --echo 2 --threads $t
	is served $((2 * fresh))
	is fresh $fresh
	is zero_filled 0
	[ "$(value errors)" -ge 6 ] || fail "$about: $(value errors) errors"
	[ "$(value substituted)" -ge 24 ] ||
		fail "$about: $(value substituted) substituted"
	[ -n "$want" ] || want=$(hashes)
	expect "$about" "$(hashes)" "$want"
done
about='damage, zeroed'
load --echo 2 --policy zero
is served $((2 * fresh))
is substituted 0
is zero_filled 24
zeroed=$(hashes)
refused jpg --policy fail
# The members of a tar are checked like the files of a folder.
tar --sort=name -C "$work/damaged" -cf "$work/damaged.tar" .
data=$work/damaged.tar
about='damage in a tar'
load --echo 2
expect "$about" "$(hashes)" "$want"
load --echo 2 --policy zero
is zero_filled 24
is errors $((6 * epochs))
expect "$about, zeroed" "$(hashes)" "$zeroed"
refused jpg --policy fail
# Ranks have the same steps, whichever rank has the damaged examples.
for policy in substitute zero; do
	for rank in 0 1 2; do
		about="damage, rank $rank, $policy"
		load --echo 2 --policy $policy --world 3 --rank $rank
		is served $((2 * fresh / 3))
		is steps $(((2 * fresh / 3 + batch - 1) / batch))
	done
done
note 'damage is passed over'

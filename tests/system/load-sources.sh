#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The same examples give the same stream from a directory, from a list and from
# a tar; records of a raw file are counted.
set -eu
name=load-sources
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"

about='other sources'
folder=$data
load --echo 2
want=$(hashes)
"$refrain" index "$data" >"$work/list"
python3 - "$data" "$work/examples.tar" <<'END' || fail 'cannot make a tar'
import io, os, sys, tarfile

top = sys.argv[1]
with tarfile.open(sys.argv[2], 'w') as tar:
    for label, folder in enumerate(sorted(os.listdir(top))):
        for name in sorted(os.listdir(os.path.join(top, folder))):
            path = folder + '/' + name
            tar.add(os.path.join(top, path), path)
            text = b'%d' % label
            info = tarfile.TarInfo(path[:-4] + '.cls')
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
END
data=$work/list
load --echo 2 --root "$folder"
expect 'from a list' "$(hashes)" "$want"
data=$work/examples.tar
load --echo 2
expect 'from a tar' "$(hashes)" "$want"
is files_read $fresh
# 100 records with a label of 8 bytes and 64 bytes of data.
data=$work/records.bin
head -c 7200 /dev/zero >"$data"
load --echo 1.5 --source raw --record-bytes 72 --label-bytes 8
is examples 100
is served 300
data=$folder
note 'lists, tars and records give the same'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Access (R8): only the owner can use socket and cache, whatever the umask. No
# name of the origin leads out of the origin, even if it becomes a link after it
# was listed; nor does a path in a control message.
set -eu
name=closed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

# -- Modes -------------------------------------------------------------------

make_tree "$src" 81 40 50000
umask 0
mkdir -m 755 "$work/wide"
start_mount "$src" "$mnt" --cache "$work/cache:50M" --cache "$work/wide:50M"
umask 022
sums_right "$src.sums" "$mnt"
# Entries are written while readers continue, so wait for them.
has_entries() {
	[ "$(find "$work/cache" -type f | wc -l)" -gt 30 ]
}
wait_for 10 has_entries || fail 'no entries'
for d in "$work/cache" "$work/wide"; do
	find "$d" -mindepth 1 -perm /077 >"$work/open"
	[ ! -s "$work/open" ] || fail "open to others: $(head "$work/open")"
done
expect 'mode of a directory made by the mount' "$(stat -c %a "$work/cache")" 700
expect 'mode of one that was there' "$(stat -c %a "$work/wide")" 755
socket=$(getfattr --only-values -n user.refrain.control "$mnt" 2>/dev/null ||
	python3 -c 'import os, sys
print(os.getxattr(sys.argv[1], "user.refrain.control").decode())' "$mnt")
[ -S "$socket" ] || fail "no socket at '$socket'"
expect 'modes of the socket' "$(stat -c '%a %u' "$socket")" '600 0'
[ -z "$(find "${socket%/*}" -maxdepth 0 -perm /022)" ] ||
	fail 'others can put something beside the socket'

# -- Paths of control messages -----------------------------------------------

python3 - "$socket" <<'END' || fail 'a control message leads out'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile('rw')
for cmd in 'warm', 'refresh':
    for path in ('..', '../outside', '/etc/passwd', '/etc', 'd1/../../x',
                 'd1//../..', 'd1/./../../outside', './..', 'x' * 5000,
                 {'hex': b'../outside'.hex()}, {'hex': '2e2'}, 7, None):
        # A value that is not an array does not stand for all paths, either.
        paths = 5 if path is None else [path]
        f.write(json.dumps({'cmd': cmd, 'paths': paths}) + '\n')
        f.flush()
        while 'ok' not in (answer := json.loads(f.readline())):
            pass
        # A warm-up goes on after a name that the source does not have.
        unknown = cmd == 'warm' and answer.get('unknown') == 1
        assert unknown or answer['ok'] is False, (cmd, path, answer)
        assert answer['unknown_why'] if unknown else answer['error']
        assert answer.get('files', 0) == 0, (cmd, path, answer)
END
stop_mount

# -- Links -------------------------------------------------------------------

# Files outside with the same names, sizes and times as those inside, but other
# bytes.
mkdir -p "$work/outside/deep" "$src/dir/deep"
for f in file deep/file; do
	printf 'public\n' >"$src/dir/$f"
	printf 'secret\n' >"$work/outside/$f"
	touch -r "$src/dir/$f" "$work/outside/$f"
done
cp -a "$src/dir" "$src/dir2"
cp -a "$src/dir" "$src/dir3"
ln -s "$work/outside" "$src/abs"
ln -s ../outside/file "$src/rel"
ln -s ../../../outside "$src/dir/up"
touch -a -d '2001-01-01' "$work/outside/file" "$work/outside/deep/file"

start_mount "$src" "$mnt" --cache "$work/cache.2:50M" --timeout 2
scan_through
for l in abs rel dir/up; do
	[ -L "$mnt/$l" ] || fail "$l is not a link"
	expect "target of $l" "$(readlink "$mnt/$l")" "$(readlink "$src/$l")"
done
"$refrain" warm "$mnt" >"$work/out" || fail 'warming fails'
expect 'resident bytes' "$(status_field resident_bytes)" "$(tree_bytes "$src")"
grep -rlq secret "$work/cache.2" && fail 'the daemon followed a link'
[ -z "$(find "$work/outside" -type f -newerat 2002-01-01)" ] ||
	fail 'the daemon read what a link points to'
stop_mount

# A name that was listed as a directory or a file has become a link when it is
# read.
start_mount "$src" "$mnt" --cache "$work/cache.3:50M" --timeout 2
scan_through
rm -r "$src/dir2" "$src/dir3/file"
ln -s "$work/outside" "$src/dir2"
ln -s "$work/outside/file" "$src/dir3/file"
for f in dir2/file dir2/deep/file dir3/file; do
	cat "$mnt/$f" >"$work/got" 2>&1 && fail "$f, now a link, can be read"
	grep -q secret "$work/got" && fail "$f leads outside"
done
"$refrain" warm "$mnt" dir2 >"$work/out" 2>&1 || :
"$refrain" refresh "$mnt" >"$work/out" || fail 'cannot refresh'
[ -L "$mnt/dir2" ] || fail 'still a directory after the refresh'
[ -L "$mnt/dir3/file" ] || fail 'still a file after the refresh'
grep -rlq secret "$work/cache.3" && fail 'the secret is in the cache'
expect 'dir' "$(cat "$mnt/dir/deep/file")" public
stop_mount

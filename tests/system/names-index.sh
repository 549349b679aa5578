#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain index: every file with its size, time and label, in order, whatever
# its name; a file that is written whole or not at all.
set -eu
name=index
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires python3

make_tree "$src" 11 200 2000
python3 - "$src" "$work/want" <<'END'
import os, sys
top = os.fsencode(sys.argv[1])
for path in (b'at the top', b'd0/tab\there', b'd0/back\\slash', b'a\nb/c',
             b'd0.5/x', b'd0/caf\xe9', b'empty'):
    full = os.path.join(top, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, 'wb') as f:
        f.write(path)
os.utime(os.path.join(top, b'empty'), ns=(0, -1500000000))
os.symlink('empty', os.path.join(top, b'link'))

def escape(b):
    return (b.replace(b'\\', b'\\\\').replace(b'\t', b'\\t')
            .replace(b'\n', b'\\n'))

rows = []
for d, _, names in os.walk(top):
    for n in names:
        full = os.path.join(d, n)
        if os.path.islink(full):
            continue
        path = os.path.relpath(full, top)
        st = os.stat(full)
        sign = b'-' if st.st_mtime_ns < 0 else b''
        s, ns = divmod(abs(st.st_mtime_ns), 10**9)
        label = path.split(b'/')[0] if b'/' in path else b''
        rows.append((path, b'%s\t%d\t%s%d.%09d\t\t%s\n' % (
            escape(path), st.st_size, sign, s, ns, escape(label))))
with open(sys.argv[2], 'wb') as f:
    f.write(b'# refrain index 2: path, size, mtime, tag, label\n')
    for _, row in sorted(rows):
        f.write(row)
END

"$refrain" index "$src" >"$work/got" 2>"$work/err" || fail 'no index'
cmp "$work/got" "$work/want" || fail 'not the files of the source'
[ ! -s "$work/err" ] || fail 'it says something on standard error'
"$refrain" index "$src" -o "$work/file" 2>"$work/err" || fail 'no file'
cmp "$work/file" "$work/want" || fail 'not the same in a file'

# There are many files, but the index needs only their names.
lines=$("$refrain" index synthetic:files=20000,size=1 | wc -l)
expect 'lines of 20,000 files' "$lines" 20001

# refuses: check that a failure does not change the old file, and leaves no new
# one.
refuses() {
	if "$refrain" index "$@" >"$work/out" 2>"$work/err"; then
		fail "index $*: no failure"
	fi
	expect 'lines on standard error' "$(wc -l <"$work/err")" 1
	[ ! -s "$work/out" ] || fail 'something was written'
}
refuses "$src/nowhere" -o "$work/file"
cmp "$work/file" "$work/want" || fail 'the old file has changed'
[ ! -e "$work/file.new" ] || fail 'half a file was left'
refuses "$src" -o "$work/no/such/place"
[ ! -w /dev/full ] || ! "$refrain" index "$src" >/dev/full 2>&1 ||
	fail 'a full device was no failure'

# A directory cannot be listed.
chmod 000 "$src/d1"
if [ "$(id -u)" -ne 0 ]; then
	refuses "$src"
	grep -q "1 directory could not be listed: 'd1': Permission" \
		"$work/err" || fail 'it does not say how many'
fi
chmod 755 "$src/d1"
make_deep "$src"
refuses "$src"
grep -q "'$src': 1 directory could not be listed: 'deep/n.*File name too long" \
	"$work/err" || fail "$(cat "$work/err")"

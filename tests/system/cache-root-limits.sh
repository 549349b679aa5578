#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The limits of a cache root: items larger than a step of a grant, or than the
# root; short inodes; file systems that do not count inodes or bytes; mounts
# that fail; grants that somebody has deleted; and caches that cannot be opened
# or dropped.
set -eu
name='cache-root-limits'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3

# files DIR N BYTES: make N files of BYTES bytes each.
files() {
	mkdir -p "$1"
	i=0
	while [ $i -lt "$2" ]; do
		head -c "$3" /dev/urandom >"$1/f$i"
		i=$((i + 1))
	done
}

has_status() {
	[ "$(status_field ready 2>/dev/null)" = true ]
}

# serve SOURCE OPTION ...: mount the source.
serve() {
	of=$1
	shift
	"$refrain" mount --foreground --no-hold "$of" "$mnt" "$@" \
		2>>"$work/daemon.1.err" &
	daemon=$!
	wait_for 30 has_status || fail 'no mount'
}

end() {
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 30 has_ended "$daemon" || fail 'the daemon does not end'
	daemon=
}

# warm STATUS: check that `refrain warm` ends with this status.
warm() {
	got=0
	timeout $((30 * patience)) "$refrain" warm "$mnt" >"$work/warm" 2>&1 ||
		got=$?
	[ $got -ne 124 ] || fail 'warm does not end'
	[ "$1" = any ] || expect 'status of warm' $got "$1"
}

refuses() {
	want=$1
	shift
	got=0
	timeout $((30 * patience)) "$refrain" "$@" >"$work/out" 2>"$work/err" ||
		got=$?
	[ $got -ne 0 ] || fail "it succeeds: $*"
	grep -q -e "$want" "$work/err" || fail "said: $(cat "$work/err")"
}

# granted ROOT: print the bytes of all grants.
granted() {
	awk 'NR > 2 { n += $2 } END { print n + 0 }' "$1/refrain-grants"
}

note 'items larger than a step'
mkdir "$work/disk"
mount -t tmpfs -o size=120M none "$work/disk"
files "$work/big" 3 5000000
serve "$work/big" --cache-root "$work/disk/a:40M"
warm 0
[ "$(status_field cache_used_bytes)" -ge 15000000 ] || fail 'not all is cached'
end

note 'an item larger than the root'
files "$work/large" 1 9000000
files "$work/large/small" 1 1000
serve "$work/large" --cache-root "$work/disk/b:8M"
warm any
[ "$(granted "$work/disk/b")" -lt 2000000 ] || fail 'an item took all space'
end

note 'few inodes'
mkdir "$work/few"
mount -t tmpfs -o size=200M,nr_inodes=1200 none "$work/few"
files "$work/few/beside" 500 0
files "$work/many" 300 1000
serve "$work/many" --cache-root "$work/few/r:180M" --keep-free 45%
warm any
end

note 'a file system that does not count inodes'
mkdir "$work/uncounted"
mount -t tmpfs -o size=100M,nr_inodes=0 none "$work/uncounted"
serve "$work/many" --cache-root "$work/uncounted/r:80M"
warm 0
end
n=$(granted "$work/uncounted/r")
[ "$n" -lt 2500000 ] || fail "a mount that ended keeps $n bytes"

note 'a file system without a size'
mkdir "$work/endless"
mount -t tmpfs -o size=0 none "$work/endless"
serve "$work/many" --cache-root "$work/endless/r:80M"
warm 0
end

note 'mounts that fail'
for n in 1 2 3; do
	files "$work/s$n" 1 1000
	refuses . mount --no-hold "$work/s$n" "$mnt" \
		--cache-root "$work/disk/c:40M" --fscontext bogus
done
expect 'caches that failed mounts keep' \
	"$(sed 1,2d "$work/disk/c/refrain-grants"; ls "$work/disk/c" |
		grep -v refrain-grants)" ''
refuses 'inside the source' mount --no-hold "$work/s1" "$mnt" \
	--cache-root "$work/s1/new:40M"
[ ! -e "$work/s1/new" ] || fail 'a refused root was created'

note 'a size with too few inodes'
mkdir "$work/inodes"
mount -t tmpfs -o size=100M,nr_inodes=4000 none "$work/inodes"
serve "$work/many" --cache-root "$work/inodes/r:80M"
warm 0
end
refuses 'inodes, more than the' mount --no-hold "$work/many" "$mnt" \
	--cache-root "$work/inodes/r:10M"

note 'grants that somebody has deleted'
d=$work/disk/lost
serve "$work/big" --cache-root "$d:22M"
warm 0
end
grants=$(granted "$d")
rm "$d/refrain-grants"
# What the cache of big uses is granted again, so 7 MB are left.
serve "$work/large" --cache-root "$d:22M"
expect 'the grant of a cache that nobody uses' \
	"$(awk -v most="$grants" 'NR > 2 && $2 == most' "$d/refrain-grants" |
		wc -l)" 1
warm any
[ "$(granted "$d")" -le $((22 << 20)) ] || fail 'more than the root is granted'
# A mount writes its own again, and another waits for that.
hash=$(sed -n '$s/ .*//p' "$d/refrain-grants")
rm "$d/refrain-grants"
mkdir "$work/m2"
refuses 'another mount' mount --no-hold "$work/large" "$work/m2" \
	--cache-root "$d:22M"
has_grant() {
	grep -q "^$hash " "$d/refrain-grants"
}
wait_for 20 has_grant || fail 'the grant of a mount is lost'
end

note 'a cache that is a link'
d=$work/disk/d
for n in 1 2 3; do
	serve "$work/s$n" --cache-root "$d:40M"
	warm 0
	end
done
hash_of() {
	"$refrain" caches "$d" | sed -n "s|.*  \([0-9a-f]*\)  *$work/s$1\$|\1|p"
}
one=$(hash_of 1)
mkdir "$work/elsewhere"
mv "$d/$one" "$work/elsewhere/x"
ln -s "$work/elsewhere/x" "$d/$one"
refuses 'symbolic link' mount --no-hold "$work/s1" "$mnt" --cache-root "$d"

note 'a cache with a foreign file, and the link, stay; the next ones go'
two=$(hash_of 2)
three=$(hash_of 3)
: >"$d/$two/foreign"
touch -d '-2 hours' "$d"/*/refrain-lock
refuses 'at least 2m' caches "$d" --drop-unused 119s
refuses . caches "$d" --drop-unused 1h
[ -e "$work/elsewhere/x/refrain-tier" ] || fail 'it followed a link'
[ -e "$d/drop-$two/foreign" ] || fail 'a foreign file was deleted'
[ ! -e "$d/$three" ] || fail 'the next cache was not dropped'
rm "$d/$one" "$d/drop-$two/foreign"
"$refrain" caches "$d" --drop-unused 1h || fail 'it does not go on'
[ ! -e "$d/drop-$two" ] || fail 'the cache is left'

note "another user's root"
chown -R 12345 "$d"
refuses 'another user' caches "$d" --drop-unused 1h
[ -z "$(find "$d" -user 0)" ] || fail 'it created files in it'
echo PASS

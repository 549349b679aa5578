#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Trust (R8), and where a cache may lie. The attribute that names the
# control socket counts only on the root of a refrain mount, and the socket only
# if the mount's owner or root serves it: for the commands, the loader and the
# Python helper. A tier that others can write is refused.
set -eu
name=trust
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

listener=
end_listener() {
	status=$?
	set +e
	kill "$listener" 2>/dev/null
	(exit $status)
	cleanup
}
trap end_listener EXIT

# listen USER SOCKET: a process of that user's that writes down who connects,
# and answers nothing.
listen() {
	: >"$2.log"
	as "$1" python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listening", os.getpid(), flush=True)
while True:
    s.accept()[0].close()
    print("connected", flush=True)' "$2" >"$2.log" 2>"$work/listener.err" &
	wait_for 10 grep -q listening "$2.log" || fail 'nobody listens'
	listener=$(sed -n 's/^listening //p' "$2.log")
}

# plan_of DIR: what the Python helper finds there, and what its plan says.
plan_of() {
	PYTHONPATH=${PYTHONPATH:-$tools} python3 -c '
import sys, refrain_plan
plan = refrain_plan.Plan(sys.argv[1])
plan.epoch(0, ["a"])
plan.flush(10)
print(refrain_plan.find_mount(sys.argv[1])[0], plan.error)' "$1"
}
tools=$(cd "$(dirname "$0")/../../tools" && pwd)

mkdir -m 777 "$short/theirs"
theirs=$short/theirs/control.sock
listen nobody "$theirs"

# -- A directory with the attribute ------------------------------------------

"$refrain" make-dataset "$work/images" --classes 2 --images 4 >/dev/null
python3 -c 'import os, sys
os.setxattr(sys.argv[1], "user.refrain.control", sys.argv[2].encode())' \
	"$work/images" "$theirs" 2>/dev/null || skip 'no extended attributes'
for c in status refresh warm verify; do
	"$refrain" $c "$work/images" >"$work/out" 2>&1 && fail "$c believes it"
done
"$refrain" load "$work/images" --batch 2 --size 32 --epochs 1 \
	>"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect 'what Python finds' "$(plan_of "$work/images")" 'None None'
expect 'connections to a planted socket' "$(grep -c connected "$theirs.log")" 0

# -- A mount whose attribute names somebody else's socket --------------------

"$helpers/stand_in" --socket "$mnt" "$theirs" >"$work/stand_in" &
daemon=$!
wait_for 10 grep -q ready "$work/stand_in" || skip 'cannot mount'
"$refrain" status "$mnt" >"$work/out" 2>"$work/err" && fail 'status believes it'
grep -q "socket of '$mnt': it is served neither by user 0" "$work/err" ||
	fail "$(cat "$work/err")"
plan_of "$mnt" >"$work/out"
grep -q 'not served by the owner' "$work/out" || fail "$(cat "$work/out")"
umount -l "$mnt"
wait "$daemon" || :
daemon=

# -- Cache directories that others can write ---------------------------------

# refused TEXT CACHE OPTION ...: one line that says so, and no mount.
refused() {
	text=$1
	shift
	"$refrain" mount "$src" "$mnt" --cache "$@" 2>"$work/err" &&
		fail "mounted: $*"
	expect "lines about $1" "$(wc -l <"$work/err")" 1
	grep -qF -- "$text" "$work/err" || fail "no '$text': $(cat "$work/err")"
}

make_tree "$src" 5 20 20000
chmod 755 "$src"
echo secret >"$src/secret"
chmod 600 "$src/secret"
for mode in 777 775 757 1777 2770; do
	mkdir -p "$work/wide"
	chmod $mode "$work/wide"
	case $mode in
	1*) text="such as '$work/wide/refrain'" ;;
	*) text="chmod go-w $work/wide" ;;
	esac
	refused "$text" "$work/wide:10M"
	expect 'mode of the directory' "$(stat -c %a "$work/wide")" $mode
	[ -z "$(ls -A "$work/wide")" ] || fail 'something was left there'
	rmdir "$work/wide"
done
refused "such as '/dev/shm/refrain'" /dev/shm:10M

# A file that another user left in a directory that is now ours.
"$refrain" mount "$src" "$mnt" --cache "$work/c:10M"
scan_through
"$refrain" warm "$mnt" >/dev/null
"$refrain" umount "$mnt"
for f in refrain-tier refrain-lock; do
	chown nobody "$work/c/$f"
	refused "'$work/c/$f' is not a private file of the" "$work/c:10M"
	chown root "$work/c/$f"
done
ln "$work/c/refrain-lock" "$work/second-name"
refused "'$work/c/refrain-lock' is not" "$work/c:10M"
rm "$work/second-name"
mv "$work/c/00" "$work/00"
install -d -o nobody "$work/c/00"
refused "$work/c" "$work/c:10M"
rm -r "$work/c/00"
mv "$work/00" "$work/c/00"

# A manifest of another user is not believed: it could open what is closed.
chown nobody "$work/c/manifest"
start_mount "$src" "$mnt" --cache "$work/c:10M" --allow-other
scan_through
expect 'manifests refused' "$(status_field tier_errors)" 1
"$refrain" status "$mnt" --json |
	grep -q '"tiers":\[{[^]]*"tier_errors":1[,}]' ||
	fail 'the tier does not count it'
as nobody cat "$mnt/secret" >"$work/out" 2>&1 && fail 'a secret is readable'
sums_right "$src.sums" "$mnt"
stop_mount
expect 'owner of the new manifest' "$(stat -c %U "$work/c/manifest")" root

# --group: a directory that was there keeps its mode, and must let members in.
group=$(id -gn daemon)
mkdir -m 700 "$work/g"
refused "the group cannot enter cache directory '$work/g'" "$work/g:10M" \
	--group "$group"
expect 'mode of the directory' "$(stat -c %a "$work/g")" 700
chgrp "$group" "$work/g"
chmod 2750 "$work/g"
"$refrain" mount "$src" "$mnt" --cache "$work/g:10M" --group "$group" ||
	fail 'no mount for a group'
"$refrain" umount "$mnt"

# -- The loader opens entries of tiers that nobody else can write --------------

# direct_hits: of an epoch over what is cached.
direct_hits() {
	"$refrain" load "$mnt" --batch 2 --size 32 --epochs 2 --json \
		>"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
	sed 's/[{,]/\n/g' "$work/out" | sed -n 's/^"direct_hits": *//p'
}

start_mount "$work/images" "$mnt" --cache "$work/tier:10M"
scan_through
"$refrain" warm "$mnt" >/dev/null
[ "$(direct_hits)" -gt 0 ] || fail 'no direct hits in a tier of our own'
for mode in 770 707 1777; do
	chmod $mode "$work/tier"
	expect "direct hits in a tier of mode $mode" "$(direct_hits)" 0
done
chmod 700 "$work/tier"
chown nobody "$work/tier"
expect 'direct hits in a tier of another user' "$(direct_hits)" 0
chown root "$work/tier"
[ "$(direct_hits)" -gt 0 ] || fail 'no direct hits afterwards'
stop_mount

# -- A cache inside the source by a bind mount ---------------------------------

# The mounts end with the namespace.
mkdir -p "$work/origin/deep/cache" "$work/all" "$work/part" "$work/around/src"
echo content >"$work/origin/file"
# shellcheck disable=SC2016 # for the inner shell
unshare -m --propagation private sh -eu -c '
	refrain=$1 work=$2 mnt=$3
	mount --bind "$work/origin" "$work/all"
	mount --bind "$work/origin/deep" "$work/part"
	mount --bind "$work/around/src" "$work/all/deep/cache"
	for dir in "$work/all/new" "$work/all/deep" "$work/part" \
		"$work/part/new" "$work/part/cache"; do
		"$refrain" mount "$work/origin" "$mnt" --cache "$dir:8M" \
			2>"$work/err" && { echo "accepted: $dir"; exit 1; }
		grep -q "inside the source" "$work/err" || {
			cat "$work/err"; exit 1; }
	done
	"$refrain" mount "$work/all" "$mnt" --cache "$work/origin/x:8M" \
		2>"$work/err" && { echo "accepted: origin/x"; exit 1; }
	grep -q "inside the source" "$work/err"
	"$refrain" mount "$work/part" "$mnt" --cache "$work/origin:8M" \
		2>"$work/err" && { echo "accepted: around the source"; exit 1; }
	grep -q "the source is inside" "$work/err"
	# Another file system that is mounted there is not the source.
	"$refrain" mount "$work/origin" "$mnt" --cache "$work/around/c:8M"
	cat "$mnt/file" >/dev/null
	"$refrain" umount "$mnt"
' sh "$refrain" "$work" "$mnt" || fail 'a cache inside the source'
expect 'names in the source' "$(find "$work/origin" | wc -l)" 4

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Cache directories that others can write, or that have files of others, are
# refused (R8); a manifest of another user is not used; --group keeps modes.
set -eu
name=access-cache-dirs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse python3
requires_users

# refused TEXT CACHE OPTION ...: check that the mount fails with one line that
# contains TEXT.
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

# A file that another user has left in a directory that is now ours.
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

# A manifest of another user is not used, because it could make closed files
# readable.
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

# With --group, a directory that existed before keeps its mode, and must be open
# to members.
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

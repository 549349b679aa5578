#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every way in which a mount can be refused: one line that names the thing and
# says what to do, exit status 1 or 2, and nothing left behind: no mount, no
# process, no directory, no lock, no socket.
set -eu
name=errors
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse unshare
requires_users

# Traces that a refused mount could leave: names, mounts, processes.
traces() {
	find "$work" -path "$work/out" -o -path "$work/err" -o \
		-path "$work/daemon.*" -o -path "$work/[ab]*.traces" \
		-o -printf '%p %y\n' 2>/dev/null | sort
	mounts_below "$work"
	# The pattern is in a file, so that the command line of grep does not
	# match it.
	(cd "$work" && grep -lsF -f pattern /proc/[0-9]*/cmdline) || :
}

# refused STATUS TEXT ... -- COMMAND ...: check that the command ends with
# STATUS and prints one line that contains all TEXTs.
refused() {
	want=$1
	shift
	: >"$work/texts"
	while [ "$1" != -- ]; do
		printf '%s\n' "$1" >>"$work/texts"
		shift
	done
	shift
	traces >"$work/before.traces"
	got=0
	"$@" >"$work/out" 2>"$work/err" || got=$?
	expect "exit status of $*: $(cat "$work/err")" $got "$want"
	[ "$(wc -l <"$work/err")" -eq 1 ] ||
		fail "not one line: $*: $(cat "$work/err")"
	grep -q '^refrain: ' "$work/err" || fail "$(cat "$work/err")"
	[ ! -s "$work/out" ] || fail "$* prints: $(cat "$work/out")"
	while read -r text; do
		grep -qF -- "$text" "$work/err" ||
			fail "no '$text' in: $(cat "$work/err")"
	done <"$work/texts"
	traces >"$work/after.traces"
	diff "$work/before.traces" "$work/after.traces" >"$work/out" ||
		fail "$* leaves: $(cat "$work/out")"
}

# mount_refused STATUS TEXT ... -- ARGUMENT ...: check a mount in the background
# and in the foreground.
mount_refused() {
	how=background
	refused_mount "$@"
	how=foreground
	refused_mount "$@"
}

# Run refrain mount for `refused`, as $how says, with a time limit.
run_mount() {
	if [ $how = foreground ]; then
		timeout 20 "$refrain" mount --foreground "$@"
	else
		timeout 20 "$refrain" mount "$@"
	fi
}

# Pass the words before -- to `refused`, and run_mount after it.
refused_mount() {
	left=$#
	while [ $left -gt 0 ]; do
		if [ "$1" = -- ]; then
			set -- "$@" -- run_mount
		else
			set -- "$@" "$1"
		fi
		shift
		left=$((left - 1))
	done
	refused "$@"
}

make_tree "$src" 31 20 20000
mkdir "$work/other" "$work/full" "$work/foreign" "$work/theirs"
echo 1 >"$work/other/f"
echo 1 >"$work/full/f"
echo 1 >"$work/foreign/f"
echo 1 >"$work/file"
c=$work/cache
size=10M

printf '%s\n' "$work" >"$work/pattern"

# -- The source and the mountpoint -------------------------------------------

mount_refused 1 "'$work/none'" 'check the path' -- \
	"$work/none" "$mnt" --cache "$c:$size"
mount_refused 1 "'$work/file'" 'name the directory' -- \
	"$work/file" "$mnt" --cache "$c:$size"
mount_refused 1 'ftp://' 'mount any other store' -- \
	ftp://host/x "$mnt" --cache "$c:$size"
mount_refused 1 "'$work/none'" "mkdir -p $work/none" -- \
	"$src" "$work/none" --cache "$c:$size"
mount_refused 1 "'$work/file': Not a directory" 'name an empty' -- \
	"$src" "$work/file" --cache "$c:$size"
mount_refused 1 "'$work/full'" 'choose an empty' -- \
	"$src" "$work/full" --cache "$c:$size"
mount_refused 1 "'/proc'" 'choose another' -- "$src" /proc --cache "$c:$size"

mkdir "$src/empty" "$work/none-yet"
ln -s "$src/empty" "$work/link"
for at in "$src/empty" "$src" "$src/../src/empty/." "$work/link"; do
	mount_refused 1 "'$at'" 'inside the source' 'choose another' -- \
		"$src" "$at" --cache "$c:$size"
done
mount_refused 1 "'$work/none-yet'" 'inside the source' -- \
	"$work/none-yet" "$work/none-yet" --cache "$c:$size"
rmdir "$src/empty" "$work/none-yet"
rm "$work/link"

# -- The cache directory -----------------------------------------------------

mount_refused 1 "'$work/foreign'" "'f'" 'choose an empty' -- \
	"$src" "$mnt" --cache "$work/foreign:$size"
mount_refused 1 "'$work/file'" 'choose' -- \
	"$src" "$mnt" --cache "$work/file:$size"
mount_refused 1 "'$work/none/c'" 'create' -- \
	"$src" "$mnt" --cache "$work/none/c:$size"
mount_refused 1 'inside the source' 'choose another' -- \
	"$src" "$mnt" --cache "$src/c:$size"
mount_refused 1 'inside the mountpoint' 'choose another' -- \
	"$src" "$mnt" --cache "$mnt/c:$size"
mkdir "$work/outer"
mount_refused 1 'inside cache' "'$work/outer'" 'choose another' -- \
	"$src" "$mnt" --cache "$work/outer:$size" --cache "$work/outer/c:$size"
mount_refused 1 'inside cache' "'$work/outer'" 'choose another' -- \
	"$src" "$mnt" --cache "$work/outer/c:$size" --cache "$work/outer:$size"
chown nobody "$work/theirs"
mount_refused 1 "'$work/theirs'" 'of your own' -- \
	"$src" "$mnt" --cache "$work/theirs:$size"

# -- Sizes -------------------------------------------------------------------

for wrong in nonsense 12Q -5M 1.2.3G 150% ''; do
	case $wrong in
	'') texts=DIR:SIZE ;;
	*) texts="'$wrong'" ;;
	esac
	mount_refused 2 "$texts" -- \
		"$src" "$mnt" --cache "$c:$wrong"
done
mount_refused 2 "must not be 0" "$c" give -- "$src" "$mnt" --cache "$c:0"
mount_refused 2 "must not be 0" "$c" give -- "$src" "$mnt" --cache "$c:0%"
mount_refused 2 'larger than its file system' "$c" 'give less' -- \
	"$src" "$mnt" --cache "$c:900000T"
mount_refused 2 --staging 'at least' -- \
	"$src" "$mnt" --cache "$c:$size" --staging 8M
mount_refused 2 --chunk 'multiple of 64K' -- \
	"$src" "$mnt" --cache "$c:$size" --chunk 100K
mount_refused 2 --limit 'at least 64K' -- \
	"$src" "$mnt" --cache "$c:$size" --limit 1K

mount_refused 2 '--revalidate must not be 0' 'refrain refresh' -- \
	"$src" "$mnt" --cache "$c:$size" --revalidate 0

# -- Words -------------------------------------------------------------------

help="see 'refrain mount --help'"
mount_refused 2 "'--nonsense'" "$help" -- \
	"$src" "$mnt" --cache "$c:$size" --nonsense
mount_refused 2 '--cache' "$help" -- "$src" "$mnt"
mount_refused 2 MOUNTPOINT "$help" -- "$src" --cache "$c:$size"
mount_refused 2 MOUNTPOINT "$help" -- --cache "$c:$size"
mount_refused 2 'operands: extra' "$help" -- \
	"$src" "$mnt" extra --cache "$c:$size"
mount_refused 2 --staging "'much'" -- \
	"$src" "$mnt" --cache "$c:$size" --staging much
mount_refused 2 --verify "'perhaps'" -- \
	"$src" "$mnt" --cache "$c:$size" --verify perhaps
mount_refused 2 --cache "'$c'" DIR:SIZE -- "$src" "$mnt" --cache "$c"
mount_refused 1 "'nonsense'" -- \
	"$src" "$mnt" --cache "$c:$size" --fault nonsense=1
mount_refused 1 "'no-such-group'" -- \
	"$src" "$mnt" --cache "$c:$size" --group no-such-group

# -- /dev/fuse ---------------------------------------------------------------

refused 1 '/dev/fuse is missing' '--device /dev/fuse' -- \
	unshare -m --propagation private sh -c '
		mount -t tmpfs none /dev && mknod /dev/null c 1 3 &&
		chmod 666 /dev/null && exec "$@"' sh \
	"$refrain" mount "$src" "$mnt" --cache "$c:$size"

# -- Ordinary users ----------------------------------------------------------

mkdir "$work/closed" "$work/closed/c" "$work/m2" "$work/m4"
chmod 755 "$src" "$work/closed"
chown nobody "$work/m2" "$work/m4"
refused 1 "'$work/closed/new'" 'Permission denied' 'choose another' -- \
	as nobody "$refrain" mount "$src" "$work/m2" \
	--cache "$work/closed/new:$size"
chmod 700 "$work/closed/c"
refused 1 "'$work/closed/c'" 'Permission denied' 'that you can write' -- \
	as nobody "$refrain" mount "$src" "$work/m2" \
	--cache "$work/closed/c:$size"
chmod 755 "$work/closed/c"
refused 1 "'$work/closed/c'" 'that you can write' -- \
	as nobody "$refrain" mount "$src" "$work/m2" \
	--cache "$work/closed/c:$size"
chmod 700 "$work/other"
refused 1 "'$work/other'" 'Permission denied' -- \
	as nobody "$refrain" mount "$work/other" "$work/m2" \
	--cache "$work/m4:$size"

# -- Beside a mount that lives, and one that is dead -------------------------

start_mount "$src" "$mnt" --cache "$c:$size"
wait_for 20 test -e "$c/manifest" || fail 'the manifest is not kept'
mkdir "$work/m3"
mount_refused 1 "'$mnt'" "refrain umount $mnt" -- \
	"$src" "$mnt" --cache "$work/c2:$size"
mount_refused 1 "'$c'" "process $daemon" 'use another' -- \
	"$src" "$work/m3" --cache "$c:$size"
refused 1 "'$c'" "process $daemon" -- "$refrain" clear "$c"
sums_right "$src.sums" "$mnt"
# A reader gets its answer before the item is in its tier, so wait for the
# entries.
wait_for 20 has_status entries "$(find "$src" -type f ! -empty | wc -l)" ||
	fail 'publications do not end'
kill_mount
start_mount "$src" "$mnt" --cache "$c:$size"
sums_right "$src.sums" "$mnt"
expect 'misses from a cache that was left by a kill' \
	"$(status_field misses)" 0
stop_mount
mount_refused 1 "'$c'" "'$src'" "refrain clear $c" -- \
	"$work/other" "$mnt" --cache "$c:$size"

# A percentage is relative to the file system.
start_mount "$src" "$mnt" --cache "$work/c4:2%"
whole=$(($(stat -f -c '%b * %S' "$work")))
expect '2 % of the file system' "$(status_field cache_capacity_bytes)" \
	$((whole / 50))
stop_mount

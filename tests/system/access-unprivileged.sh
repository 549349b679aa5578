#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Ordinary users (M21). One mounts through fusermount3, reads, asks, unmounts;
# another is kept out, or let in with --allow-other and held to the modes of
# the files; nobody else gets at the socket and the cache. What root mounts
# with --allow-other holds to the modes, too.
#
# Its mount namespace has a /dev/fuse that everybody may open, and an
# /etc/fuse.conf to change.
set -eu
name=unprivileged
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/user.sh
. "$(dirname "$0")/user.sh"
requires root fuse fusermount3 python3
requires_users
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'

mkdir "$work/dev"
mount -t tmpfs -o mode=755 none "$work/dev"
mknod "$work/dev/fuse" c 10 229 && chmod 666 "$work/dev/fuse"
mount --bind "$work/dev/fuse" /dev/fuse
[ -u "$(command -v fusermount3)" ] || skip 'fusermount3 is not setuid'
{ ! mount | grep -q " on / .*nosuid"; } || skip 'setuid is of no use here'

# A runtime directory for each; theirs is closed, as systemd makes it.
mkdir "$short/nobody" "$work/nobody"
chown nobody "$short/nobody" "$work/nobody"
chmod 700 "$short/nobody" "$work/nobody"
mkdir "$work/m"
chown nobody "$work/m"

# can USER FILE, cannot USER FILE: read it.
can() {
	as "$1" cat "$2" >"$work/got" 2>"$work/err" ||
		fail "$1 cannot read $2: $(cat "$work/err")"
}

cannot() {
	if as "$1" cat "$2" >"$work/got" 2>"$work/err"; then
		fail "$1 reads $2"
	fi
	grep -q "$3" "$work/err" || fail "not '$3': $(cat "$work/err")"
}

modes() {
	mkdir -p "$src/closed"
	echo all >"$src/all" && chmod 644 "$src/all"
	echo owner >"$src/owner" && chmod 600 "$src/owner"
	echo inside >"$src/closed/inside" && chmod 644 "$src/closed/inside"
	chmod 700 "$src/closed"
	chmod 755 "$src"
}

as_owner() {
	user_runtime=$short/nobody
	done=0
	as nobody "$@" || done=$?
	user_runtime=
	return $done
}

user_mount() {
	as_owner "$refrain" mount "$src" "$work/m" \
		--cache "$work/nobody/cache:50M" "$@"
}

user_status() {
	as_owner "$refrain" status "$work/m" --json >"$work/status" ||
		fail 'the owner cannot ask'
	sed 's/[{,]/\n/g' "$work/status" | sed -n "s/^\"$1\"://p"
}

user_umount() {
	pid=$(user_status pid)
	as_owner "$refrain" umount "$work/m" || fail 'the owner cannot unmount'
	has_ended "$pid" || fail 'the daemon stays'
	[ -z "$(mounts_below "$work/m")" ] || fail 'the mount stays'
	[ -z "$(find "$short/nobody" -name '*.sock')" ] || fail 'a socket stays'
}

# -- A user's mount ----------------------------------------------------------

make_tree "$src" 71 60 50000
chmod -R a+rX "$src"
modes
chown -R nobody "$src/owner" "$src/closed"
cp "$src.sums" "$work/sums" && chmod 644 "$work/sums"
user_mount || fail 'an ordinary user cannot mount'
as nobody sh -c "cd '$work/m' && sha256sum --quiet --strict -c '$work/sums'" ||
	fail 'wrong bytes'
can nobody "$work/m/owner"
can nobody "$work/m/closed/inside"
[ "$(user_status misses)" -gt 0 ] || fail 'no misses'
[ "$(user_status evictions)" -eq 0 ] || fail 'evictions'
grep -q " $work/m ro,nosuid,nodev,.* - fuse.refrain .*default_permissions" \
	/proc/self/mountinfo || fail "$(grep refrain /proc/self/mountinfo)"
pid=$(user_status pid)
expect 'the user of the daemon' "$(stat -c %U "/proc/$pid")" nobody

# Neither the mount nor the socket nor the cache are for others.
cannot daemon "$work/m/all" 'Permission denied'
chmod 711 "$work/nobody" "$short/nobody"
as daemon ls "$work/m" >"$work/got" 2>&1 && fail 'another user lists it'
as daemon "$refrain" status "$work/m" >"$work/got" 2>&1 &&
	fail 'another user asks'
as daemon "$refrain" umount "$work/m" >"$work/got" 2>&1 &&
	fail 'another user unmounts'
socket=$(find "$short/nobody" -name '*.sock')
expect 'modes of the socket' "$(stat -c '%a %U' "$socket")" '600 nobody'
as daemon python3 - "$socket" <<'END' || fail 'another user connects'
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    sys.exit(0)
sys.exit(1)
END
expect 'modes of the cache' \
	"$(stat -c '%a %U' "$work/nobody/cache")" '700 nobody'
as daemon ls "$work/nobody/cache" >"$work/got" 2>&1 &&
	fail 'another user lists the cache'
cannot root "$work/m/all" 'Permission denied'
user_umount

# -- A user's mount outlives its daemon --------------------------------------

here=$(cd "${srcdir:-.}/tests/system" && pwd)
mkdir "$src/many"
(cd "$src/many" && touch a b c)
for REFRAIN_DISABLE in '' resend; do
	as_owner "$refrain" clear "$work/nobody/cache" >/dev/null ||
		fail 'the owner cannot clear the cache'
	user_mount || fail 'an ordinary user cannot mount'
	expect 'whether it is held' "$(user_status held)" '"yes"'
	as_owner python3 "$here/survive.py" "$refrain" "$work/m" "$src" 5 1 \
		>"$work/got" 2>&1 || fail "readers: $(cat "$work/got")"
	expect 'recoveries' "$(user_status recoveries)" 5
	user_umount
done
REFRAIN_DISABLE=
rm -r "$src/many"

# -- What a user may not read ------------------------------------------------

# says TEXT: it is in what was printed.
says() {
	grep -q -- "$1" "$work/got" || fail "no '$1': $(cat "$work/got")"
}

chown root "$src/owner" "$src/closed"
as_owner "$refrain" mount "$src" "$work/m" --cache "$work/nobody/c3:50M" ||
	fail 'no mount of what is closed in part'
as_owner "$refrain" warm "$work/m" >"$work/got" 2>&1 && fail 'all is warm'
closed="1 directory could not be listed: 'closed': Permission denied"
says "^refrain: warm: $closed"
says "^refrain: warm: 1 item could not be fetched: 'owner': Permission denied"
# Without these two.
says "^$(($(find "$src" -type f ! -empty | wc -l) - 2)) items .* are cached"
expect 'refusals' "$(user_status origin_errors)" 1
expect 'whether it is all listed' "$(user_status scan_complete)" false
expect 'directories' "$(user_status unlisted_directories)" 1
as_owner "$refrain" status "$work/m" >"$work/got" || fail 'no status'
says "$closed"
as_owner "$refrain" refresh "$work/m" >"$work/got" 2>&1 && fail 'all is listed'
says "^refrain: refresh: $closed"
as_owner "$refrain" index "$src" >"$work/got" 2>&1 && fail 'all is in the index'
says "^refrain: index: .*$closed"
user_umount
chown -R nobody "$src/owner" "$src/closed"

# -- --allow-other -----------------------------------------------------------

# Only where root has said so.
sed '/^ *user_allow_other/d' /etc/fuse.conf >"$work/fuse.conf" 2>/dev/null || :
touch /etc/fuse.conf 2>/dev/null
mount --bind "$work/fuse.conf" /etc/fuse.conf
got=0
as_owner "$refrain" mount "$src" "$work/m" --allow-other \
	--cache "$work/nobody/c2:50M" >"$work/got" 2>&1 || got=$?
expect 'exit status' $got 1
expect 'lines of the refusal' "$(wc -l <"$work/got")" 1
grep -q '^refrain: .*user_allow_other.*--allow-other' "$work/got" ||
	fail "$(cat "$work/got")"
[ ! -e "$work/nobody/c2" ] || fail 'a refused mount leaves a cache directory'
umount /etc/fuse.conf
echo user_allow_other >>"$work/fuse.conf"
mount --bind "$work/fuse.conf" /etc/fuse.conf
user_mount --allow-other || fail 'no mount in spite of user_allow_other'
can daemon "$work/m/all"
cannot daemon "$work/m/owner" 'Permission denied'
cannot daemon "$work/m/closed/inside" 'Permission denied'
can nobody "$work/m/owner"
# Also once the kernel has it all.
cannot daemon "$work/m/owner" 'Permission denied'
as daemon sh -c ": >'$work/m/all'" 2>/dev/null && fail 'it can be written'
as nobody sh -c ": >'$work/m/owner'" 2>/dev/null && fail 'it can be written'
expect 'what is left of it' "$(cat "$work/m/owner")" owner
as daemon "$refrain" status "$work/m" >"$work/got" 2>&1 &&
	fail 'another user asks'
user_umount

# -- What root mounts --------------------------------------------------------

chown -R root "$src/owner" "$src/closed"
start_mount "$src" "$mnt" --cache "$work/root:50M" --allow-other
can nobody "$mnt/all"
cannot nobody "$mnt/owner" 'Permission denied'
cannot nobody "$mnt/closed/inside" 'Permission denied'
cat "$mnt/owner" "$mnt/closed/inside" >"$work/got"
cannot nobody "$mnt/owner" 'Permission denied'
cannot nobody "$mnt/closed/inside" 'Permission denied'
as nobody cat "$work/root/refrain-tier" >"$work/got" 2>&1 &&
	fail 'a user reads the cache'
as nobody "$refrain" status "$mnt" >"$work/got" 2>&1 &&
	fail 'a user asks'
stop_mount
start_mount "$src" "$mnt" --cache "$work/root:50M"
cannot nobody "$mnt/all" 'Permission denied'
stop_mount

# A member of --group reaches the mount with --allow-other only, as --help says.
"$refrain" mount --help | tr -s ' \n' ' ' |
	grep -q 'regardless of their modes; to reach the mount itself,' ||
	fail '--help does not say what --group needs'
group=$(id -gn daemon)
start_mount "$src" "$mnt" --cache "$work/group:50M" --group "$group"
cat "$mnt/all" >"$work/got"
as daemon "$refrain" status "$mnt" >"$work/got" 2>&1 && fail 'a member asks'
says 'the mount may belong to another user'
stop_mount
start_mount "$src" "$mnt" --cache "$work/group:50M" --group "$group" \
	--allow-other
as daemon "$refrain" status "$mnt" >"$work/got" 2>&1 ||
	fail "a member cannot ask: $(cat "$work/got")"
can daemon "$mnt/all"
# Its plans are taken, and its loader opens what is cached in the tier.
"$refrain" make-dataset "$src/images" --classes 1 --images 32 --size 32x32 \
	>/dev/null
chmod -R a+rX "$src/images"
"$refrain" refresh "$mnt" >/dev/null || fail 'cannot refresh'
"$refrain" warm "$mnt" >"$work/got" 2>&1 || fail "$(cat "$work/got")"
echo all | as daemon "$refrain" plan "$mnt" >"$work/got" 2>&1 ||
	fail "a member cannot plan: $(cat "$work/got")"
says '^1 file: 1 was in the cache'
as daemon "$refrain" load "$mnt/images" --batch 8 --size 32 --epochs 2 \
	>"$work/got" 2>&1 || fail "a member cannot load: $(cat "$work/got")"
[ "$(status_field direct_hits)" -gt 0 ] ||
	fail 'the loader of a member opens nothing itself'
stop_mount

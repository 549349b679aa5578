# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of ordinary users (M21); sourced after user.sh. Its mount namespace
# has a /dev/fuse that everybody may open, so that fusermount3 mounts for a
# user. The source belongs to `nobody`, and some of its files are only for the
# owner.
mkdir "$work/dev"
mount -t tmpfs -o mode=755 none "$work/dev"
mknod "$work/dev/fuse" c 10 229 && chmod 666 "$work/dev/fuse"
mount --bind "$work/dev/fuse" /dev/fuse
[ -u "$(command -v fusermount3)" ] || skip 'fusermount3 is not setuid'
{ ! mount | grep -q " on / .*nosuid"; } || skip 'setuid is of no use here'

# Make a runtime directory for each user, which is closed to others, like those
# that systemd makes.
mkdir "$short/nobody" "$work/nobody"
chown nobody "$short/nobody" "$work/nobody"
chmod 700 "$short/nobody" "$work/nobody"
mkdir "$work/m"
chown nobody "$work/m"

# can USER FILE, cannot USER FILE TEXT: check whether the user can read the
# file.
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

# says TEXT: check that the output contains TEXT.
says() {
	grep -q -- "$1" "$work/got" || fail "no '$1': $(cat "$work/got")"
}

make_tree "$src" 71 60 50000
chmod -R a+rX "$src"
modes
chown -R nobody "$src/owner" "$src/closed"
cp "$src.sums" "$work/sums" && chmod 644 "$work/sums"

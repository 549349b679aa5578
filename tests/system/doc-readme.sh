#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What README.md and doc/python.md tell a newcomer to type, typed in a new
# Debian of the release that README names, by a user with sudo. The root is
# made by mmdebstrap from the host's package source. `make check-readme` runs
# this; it takes about ten minutes.
set -eu
name=readme
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 mmdebstrap apt-config pivot_root
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "${srcdir:-$here/../..}" && pwd)
images=600
root=$work/root

# -- The root ------------------------------------------------------------------

# How the host gets packages: proxies, certificates, and the like. The reader
# says yes when apt asks.
{
	apt-config dump | grep '^Acquire::'
	for scheme in http https; do
		eval "proxy=\${${scheme}_proxy:-}"
		[ -z "$proxy" ] ||
			echo "Acquire::$scheme::Proxy \"$proxy\";"
	done
	echo 'APT::Get::Assume-Yes "true";'
} >"$work/apt.conf"
find /etc/apt/sources.list /etc/apt/sources.list.d \
	\( -name '*.list' -o -name '*.sources' \) -size +0 >"$work/sources" \
	2>/dev/null || :
[ -s "$work/sources" ] || skip 'the host has no package source'
begun=$(date +%s)
# shellcheck disable=SC2046 # the names of the host's files
mmdebstrap --variant=minbase --aptopt="$work/apt.conf" --include=sudo \
	bookworm "$root" $(cat "$work/sources") >"$work/log" 2>&1 || {
	tail -n 3 "$work/log"
	skip 'no root could be made: is there a mirror of Debian?'
}
note "the root took $(($(date +%s) - begun)) s"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
ln -sf ../proc/self/mounts "$root/etc/mtab"

# -- What the reader has -------------------------------------------------------

# The tree, as it is distributed, a dataset, and a trainer.
chroot "$root" useradd -m -s /bin/bash reader
echo 'reader ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/reader"
make -s distdir distdir="$root/home/reader/refrain" >"$work/log" 2>&1 ||
	fail 'make distdir'
rm "$root/home/reader/refrain/configure"
mkdir -p "$root/net/imagenet" "$root/data/imagenet" "$root/nvme"
"$refrain" make-dataset --images $images --classes 10 --size 160x120 \
	"$root/net/imagenet/train" >/dev/null
cp "$here/doc_readme_train.py" "$root/home/reader/refrain/train.py"
python3 "$here/doc_readme.py" "$top" $images >"$root/home/reader/session" ||
	fail 'doc_readme.py'
chroot "$root" chown -R reader: /home/reader /data/imagenet /nvme

# -- The reader ----------------------------------------------------------------

# Not in chroot(2), which forbids user namespaces. All that runs there ends
# with its process 1.
cat >"$work/enter" <<'END'
set -eu
cd "$1"
mount --bind . . && cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs dev/shm
# For everybody, as udev makes it; the host may have no udev.
mknod -m 666 fuse c 10 229 && mount --bind fuse dev/fuse
mount -t tmpfs tmpfs run
pivot_root . mnt
cd /
umount -l /mnt
exec setpriv --reuid=reader --regid=reader --init-groups --reset-env \
	bash -c 'cd ~/refrain && exec bash ~/session'
END
begun=$(date +%s)
unshare -mpf --kill-child sh "$work/enter" "$root" </dev/null \
	>"$work/session.log" 2>&1 && status=0 || status=$?
grep -E '^(==|\$|FAILED)' "$work/session.log"
[ "$status" -eq 0 ] || {
	tail -n 40 "$work/session.log"
	fail 'a block does not run as it stands'
}
grep -q '^== all blocks have run' "$work/session.log" || fail 'it ended early'
note "the session took $(($(date +%s) - begun)) s"

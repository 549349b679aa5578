#!/bin/sh
# SPDX-License-Identifier: MIT
#
# package_life.sh deb|rpm: runs in the root that a test has made. Installs the
# packages, upgrades them while programs read a mount, and purges them.
# /packages/1 and /packages/2 contain working packages; the command in those of
# /packages/3 fails.
set -eu
kind=$1
unset REFRAIN_TEST_WORK XDG_RUNTIME_DIR
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
	DEBIAN_FRONTEND=noninteractive
cd /tests
said=/run/said

fail() {
	cat $said
	echo "FAILED: $*"
	exit 1
}

# wait_for COMMAND ...: wait until the command succeeds, for up to a minute.
wait_for() {
	waits=1200
	until "$@"; do
		waits=$((waits - 1))
		[ $waits -gt 0 ] || return 1
		sleep 0.05
	done
}

# install VERSION. install VERSION: install the packages. Debian's rpm needs
# options for this, and does not know the installed packages of Debian.
install() {
	case $kind in
	deb) dpkg -i /packages/"$1"/*.deb ;;
	rpm) rpm --force-debian --nodeps --oldpackage -U /packages/"$1"/*.rpm ;;
	esac >$said 2>&1 || fail "version $1 is not installed"
}

purge() {
	case $kind in
	deb) dpkg --purge refrain python3-refrain librefrain-dev librefrain0 \
		refrain-doc ;;
	rpm) rpm --force-debian --nodeps -e refrain python3-refrain \
		librefrain-devel librefrain0 refrain-doc ;;
	esac >$said 2>&1 || fail 'the packages are not removed'
}

# files: list the files that a purge must not change, without files and logs of
# dpkg and rpm.
files() {
	find / -xdev \( -path /tests -o -path /packages -o -path /srv \
		-o -path /var/lib/dpkg -o -path /root/.rpmdb -o -path /var/log \
		-o -path /var/cache -o -path /tmp \) -prune -o -print | sort
}

field() {
	tests/system/status_field /mnt/data "$1"
}

program_of() {
	readlink "/proc/$(field pid)/exe"
}

as_reader() {
	setpriv --reuid=reader --regid=reader --init-groups \
		env HOME=/srv/reader "$@"
}

reader_field() {
	as_reader /tests/tests/system/status_field /srv/reader/mnt "$1"
}

begun() {
	[ -e /run/stop.begun ] || ! kill -0 "$readers" 2>/dev/null
}

start_readers() {
	rm -f /run/stop /run/stop.begun
	python3 tests/system/survive.py /usr/bin/refrain /mnt/data /srv/data \
		0 1 /run/stop >/run/read 2>&1 &
	readers=$!
	wait_for begun || fail 'the readers do not begin'
}

readers_saw_nothing() {
	touch /run/stop
	wait "$readers" || fail "$1: $(cat /run/read)"
	echo "== $1: no reader saw an error"
}

says() {
	grep -q -e "$1" $said || fail "it does not say: $1"
}

is_stopped() {
	grep -q '^State:.*T (stopped)' "/proc/$1/status"
}

ended() {
	! grep -qsx -e refrain -e refrain-hold /proc/[0-9]*/comm
}

# -- Installed -----------------------------------------------------------------

useradd -M -d /srv/reader reader
mkdir -p /mnt/data /srv/reader/mnt /srv/cache
chown -R reader: /srv/reader
files >/run/before
install 1

# -- Upgraded, with a mount of root's and one of a user's ----------------------

refrain mount /srv/data /mnt/data --cache /srv/cache:8M --limit 128K \
	--chunk 64K --staging 512K
as_reader refrain mount /srv/data /srv/reader/mnt --cache /srv/reader/cache:1M
[ "$(program_of)" = /usr/bin/refrain ] || fail "it runs $(program_of)"
start_readers
install 2
says "the mount at '/mnt/data' has been upgraded in place"
says "the mount at '/srv/reader/mnt' has been upgraded in place"
[ "$(program_of)" = /usr/bin/refrain ] || fail "it runs $(program_of)"
[ "$(field recoveries) $(reader_field recoveries)" = '1 1' ] ||
	fail 'not upgraded once'
readers_saw_nothing 'an upgrade'

# Upgrade to a program that cannot take over, and to one that can.
start_readers
install 3
says "/mnt/data' goes on with .*: this program does nothing"
says "/srv/reader/mnt' goes on with .*: this program does nothing"
[ "$(program_of)" = '/usr/bin/refrain (deleted)' ] ||
	fail "it runs $(program_of)"
install 2
says "the mount at '/mnt/data' has been upgraded in place"
[ "$(field recoveries)" = 2 ] || fail 'not upgraded once more'
readers_saw_nothing 'an upgrade to a program that fails'

# An upgrade of the packages does not end a daemon that does not answer.
pid=$(reader_field pid)
kill -STOP "$pid"
wait_for is_stopped "$pid" || fail 'the daemon does not stop'
export REFRAIN_UPGRADE_WAIT=2
install 1
says "/srv/reader/mnt' goes on with .*: it does not answer"
says "the mount at '/mnt/data' has been upgraded in place"
kill -CONT "$pid"
unset REFRAIN_UPGRADE_WAIT
as_reader refrain umount /srv/reader/mnt
echo '== a daemon that does not answer is left alone'

# -- Removed -------------------------------------------------------------------

wants=/etc/systemd/system/multi-user.target.wants
start_readers
mkdir -p $wants
ln -s /lib/systemd/system/refrain@.service $wants/refrain@data.service
purge
says 'these mounts stay'
says '^/mnt/data$'
! grep -i warning $said || fail 'a warning'
readers_saw_nothing 'a purge'
umount /mnt/data
wait_for ended || fail 'a process is left'
rmdir -p --ignore-fail-on-non-empty $wants
files >/run/after
diff /run/before /run/after >$said || fail 'files are left, or lost'
echo '== nothing is left'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain@.service below a systemd that is process 1 of a container. Readers see
# no error when the daemon is killed, restarted or upgraded, nor when no program
# can be started for some seconds. If that takes longer, they get an error in
# time, and the unit tries until it can mount again. A stop leaves nothing
# behind.
#
# REFRAIN_KILLS is the number of kills of the daemon (10). The daemon gets
# REFRAIN_DISABLE, too.
set -eu
name=survive-systemd
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/container-lib.sh
. "${srcdir:-.}/tests/system/container-lib.sh"

recover_s=20
sizes='--limit 128K --chunk 64K --staging 512K'
make_tree "$root/srv/data" 3 120 400000
head -c 5000000 /dev/urandom >"$root/srv/data/shard"
mkdir "$root/srv/data/many" "$root/etc/refrain" "$root/mnt/data" \
	"$root/mnt/later"
(cd "$root/srv/data/many" && seq -f 'n%05.0f' 3000 | xargs touch)
bytes=$(tree_bytes "$root/srv/data")
cat >"$root/etc/refrain/data.conf" <<END
SOURCE=/srv/data
MOUNTPOINT=/mnt/data
OPTIONS=--cache /var/cache/data:$((bytes / 2)) $sizes --group daemon
RECOVER_TIMEOUT=$recover_s
REFRAIN_DISABLE=${REFRAIN_DISABLE:-}
END
cat >"$root/etc/refrain/later.conf" <<END
SOURCE=/srv/later
MOUNTPOINT=/mnt/later
OPTIONS=--cache /var/cache/later:1M
END

# -- The container -----------------------------------------------------------

inside() {
	pod exec refrain "$@"
}

ctl() {
	inside /bin/systemctl "$@"
}

systemd_runs() {
	ctl is-system-running >"$work/said" 2>&1
}

start_systemd() {
	pod run --detach --name refrain --network=none --systemd=always \
		--device /dev/fuse --cap-add SYS_ADMIN \
		--security-opt apparmor=unconfined \
		--rootfs "$root" /lib/systemd/systemd >"$work/said" 2>&1 ||
		skip "podman runs no container: $(tail -n 1 "$work/said")"
	wait_for 30 systemd_runs ||
		skip "systemd does not run: $(cat "$work/said")"
}

gives_up() {
	inside /bin/journalctl --no-pager -u 'refrain@*' | tail -n 40
	fail "$*"
}

field() {
	inside /usr/local/bin/status_field /mnt/data "$1"
}

main_pid() {
	ctl show -P MainPID refrain@data
}

is_active() {
	[ "$(ctl is-active "refrain@$1")" = active ]
}

mounted() {
	inside /bin/grep -q ' /mnt/data fuse.refrain ' /proc/mounts
}

# -- Readers -----------------------------------------------------------------

readers_begun() {
	[ -e "$root/srv/stop.begun" ] || has_ended "$readers"
}

start_readers() {
	rm -f "$root/srv/stop" "$root/srv/stop.begun"
	inside /usr/bin/python3 /usr/local/bin/survive.py "$bin/refrain" \
		/mnt/data /srv/data 0 1 /srv/stop >"$work/read" 2>&1 &
	readers=$!
	wait_for 60 readers_begun || gives_up 'the readers do not begin'
}

readers_saw_nothing() {
	touch "$root/srv/stop"
	wait "$readers" || gives_up "$1: readers: $(cat "$work/read")"
}

is_another() {
	pid=$(main_pid)
	[ "$pid" -gt 0 ] && [ "$pid" != "$1" ]
}

kill_daemon() {
	pid=$(main_pid)
	ctl kill --kill-whom=main --signal=KILL refrain@data
	wait_for 30 is_another "$pid" || gives_up 'no daemon follows'
}

# break_program: replace the program by one that does nothing; a second call
# undoes this.
break_program() {
	mv "$root$bin/refrain" "$work/refrain.was"
	cp "$root/bin/false" "$root$bin/refrain"
}

mend_program() {
	mv "$work/refrain.was" "$root$bin/refrain"
}

# -- The life of a unit ------------------------------------------------------

start_systemd
ctl start refrain@data || gives_up 'the unit does not start'
expect held "$(field held)" yes

# The host sees the mount, as the daemon has no mount namespace of its own.
expect 'the mount namespace of the daemon' \
	"$(inside /bin/readlink "/proc/$(main_pid)/ns/mnt")" \
	"$(inside /bin/readlink /proc/1/ns/mnt)"
mounted || gives_up 'the host does not see the mount'
expect 'rights that the daemon may get' \
	"$(inside /bin/sed -n 's/^NoNewPrivs:[[:space:]]*//p' \
		"/proc/$(main_pid)/status")" 1
expect 'the cache that a group may read' \
	"$(inside /bin/stat -c '%a %G' /var/cache/data)" '2750 daemon'
inside /bin/systemd-analyze security --offline=true --threshold=46 \
	"$(ctl show -P FragmentPath refrain@data)" >"$work/said" 2>&1 ||
	gives_up "the unit is exposed: $(tail -n 1 "$work/said")"

start_readers
i=0
while [ $i -lt "${REFRAIN_KILLS:-10}" ]; do
	kill_daemon
	i=$((i + 1))
done
wait_for 30 is_active data || gives_up 'not active after the kills'
readers_saw_nothing 'kill -9'
note "$i kills${REFRAIN_DISABLE:+, without $REFRAIN_DISABLE}"

start_readers
before=$(field recoveries)
for what in restart reload restart reload restart; do
	ctl $what refrain@data || gives_up "$what"
done
expect 'recoveries by restart and reload' "$(field recoveries)" \
	$((before + 5))
expect 'the last end' "$(field last_end)" restart
readers_saw_nothing 'restart and reload'

# The program is missing for a time for which readers wait.
start_readers
break_program
ctl reload refrain@data 2>/dev/null && gives_up 'reloaded to a broken program'
pid=$(main_pid)
ctl kill --kill-whom=main --signal=KILL refrain@data
tried() {
	[ "$(ctl show -P NRestarts refrain@data)" -ge "$1" ]
}
wait_for 30 tried 2 || gives_up 'the unit does not go on trying'
mend_program
wait_for 30 is_active data || gives_up 'no daemon after the program is back'
readers_saw_nothing 'a program that was away'
expect 'recoveries' "$(field recoveries)" $((before + 6))

# stays_away: check that waiting readers get an error in time if the program
# stays missing, however the daemon has ended.
stays_away() {
	rm -f "$root/srv/opened" "$root/srv/killed"
	inside /bin/sh -c 'exec 9</mnt/data/shard && touch /srv/opened &&
		until [ -e /srv/killed ]; do sleep 0.1; done &&
		timeout 60 dd iflag=direct bs=64k of=/dev/null <&9' \
		>"$work/dd" 2>&1 &
	waiting=$!
	wait_for 30 test -e "$root/srv/opened" || gives_up 'cannot open a file'
	break_program
	begun=$(date +%s)
	ctl "$@" refrain@data
	touch "$root/srv/killed"
	status=0
	wait $waiting || status=$?
	took=$(($(date +%s) - begun))
	[ $status -eq 1 ] ||
		gives_up "$1: a reader ended with $status: $(cat "$work/dd")"
	if [ $took -lt $((recover_s - 1)) ] ||
		[ $took -gt $(((recover_s + 8) * patience)) ]; then
		gives_up "$1: readers waited $took s, not $recover_s"
	fi
	note "$1, without a program readers waited $took s"
	! mounted || gives_up "$1: the ended mount is still there"
	mend_program
	wait_for 30 is_active data || gives_up "$1: the unit did not go on"
	expect 'recoveries of a new mount' "$(field recoveries)" 0
	inside /usr/bin/cmp /srv/data/shard /mnt/data/shard ||
		gives_up 'wrong bytes'
}
stays_away kill --kill-whom=main --signal=KILL
stays_away restart --no-block
inside /bin/journalctl --no-pager -u refrain@data |
	grep -q 'cannot go on with the mount.*its connection has ended' ||
	gives_up 'the log lacks why the mount is new'

# The unit waits for a missing source, however long that takes.
ctl start refrain@later 2>/dev/null && gives_up 'mounted without a source'
later_tried() {
	[ "$(ctl show -P NRestarts refrain@later)" -ge 7 ]
}
wait_for 60 later_tried || gives_up 'the unit does not wait for its source'
mkdir "$root/srv/later"
echo it >"$root/srv/later/is"
wait_for 30 is_active later || gives_up 'a source that is back is not mounted'
expect 'a file of it' "$(inside /bin/cat /mnt/later/is)" it
ctl stop refrain@later

# A stop ends the mount, with a daemon and without one.
nothing_left() {
	! mounted || gives_up "$1: the mount is left"
	[ -z "$(inside /usr/bin/find /run -name '*refrain*' -type f)" ] ||
		gives_up "$1: files are left: $(inside /usr/bin/find /run \
			-name '*refrain*' -type f)"
	[ "$(main_pid)" = 0 ] || gives_up "$1: the daemon is left"
}
ctl stop refrain@data || gives_up 'stop'
expect 'the unit' "$(ctl is-active refrain@data)" inactive
nothing_left 'stop'
ctl start refrain@data || gives_up 'start after a stop'
break_program
ctl kill --kill-whom=main --signal=KILL refrain@data
wait_for 30 tried 9 || gives_up 'the unit does not go on trying'
ctl stop refrain@data || gives_up 'stop without a daemon'
nothing_left 'stop without a daemon'
mend_program

# -- A user's mount, with the lines that doc/operations.md gives --------------

operations=$here/../../doc/operations.md
lines=$(sed -n '/^    User=train/,/^$/s/^    //p' "$operations")
[ -n "$lines" ] || fail 'doc/operations.md has no lines for User='
mkdir -p "$root/etc/systemd/system/refrain@user.service.d" "$root/mnt/user" \
	"$root/var/cache/user"
printf '[Service]\n%s\n' "$lines" \
	>"$root/etc/systemd/system/refrain@user.service.d/user.conf"
cat >"$root/etc/refrain/user.conf" <<END
SOURCE=/srv/data
MOUNTPOINT=/mnt/user
OPTIONS=--cache /var/cache/user/data:16M
END
inside /usr/sbin/useradd train
inside /bin/chown train /mnt/user /var/cache/user
inside /bin/chmod a+rX /srv/data -R
inside /bin/chmod a+rw /dev/fuse
ctl daemon-reload
ctl start refrain@user || gives_up "a user's unit does not start"
inside /sbin/runuser -u train -- \
	/usr/bin/cmp /srv/data/shard /mnt/user/shard ||
	gives_up "a user's mount"
ctl stop refrain@user || gives_up "a user's unit does not stop"

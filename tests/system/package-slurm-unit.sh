#!/bin/sh
# SPDX-License-Identifier: MIT
#
# examples/slurm where systemd runs: the mount is a unit, in a container whose
# process 1 is systemd. The scripts are called as slurmd calls them. Two jobs
# share the unit, which is stopped after the last. A unit that ran before is not
# stopped, and if a mount cannot be made, the prolog fails.
set -eu
name=package-slurm-unit
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/container-lib.sh
. "${srcdir:-.}/tests/system/container-lib.sh"
examples=$(cd "${srcdir:-.}/examples/slurm" && pwd)
scripts=/etc/slurm/refrain

mkdir -p "$root$scripts" "$root/etc/refrain" "$root/mnt/imagenet"
cp "$examples/prolog" "$examples/epilog" "$examples/refrain-jobs" \
	"$root$scripts"
make_tree "$root/srv/data" 4 60 200000
cat >"$root/etc/refrain/imagenet.conf" <<END
SOURCE=/srv/data
MOUNTPOINT=/mnt/imagenet
OPTIONS=--cache /var/cache/imagenet:8M
END
echo 'mounts=imagenet' >"$root/etc/refrain/slurm.conf"

inside() {
	pod exec refrain "$@"
}

ctl() {
	inside /bin/systemctl "$@"
}

systemd_runs() {
	ctl is-system-running >"$work/said" 2>&1
}

gives_up() {
	cat "$work/said"
	inside /bin/journalctl --no-pager -u 'refrain@*' | tail -n 40
	fail "$*"
}

# script NAME JOB
script() {
	pod exec --env SLURM_JOB_ID="$2" --env SLURM_JOB_PARTITION=gpu \
		refrain $scripts/"$1" >"$work/said" 2>&1
}

# unit_is STATE
unit_is() {
	expect 'the unit' "$(ctl is-active refrain@imagenet || :)" "$1"
}

reads() {
	inside /bin/sh -c "cd /mnt/imagenet &&
		sha256sum --quiet --strict -c /srv/data.sums" \
		>"$work/said" 2>&1 || gives_up 'wrong bytes'
}

pod run --detach --name refrain --network=none --systemd=always \
	--device /dev/fuse --cap-add SYS_ADMIN \
	--security-opt apparmor=unconfined \
	--rootfs "$root" /lib/systemd/systemd >"$work/said" 2>&1 ||
	skip "podman runs no container: $(tail -n 1 "$work/said")"
wait_for 30 systemd_runs || skip "systemd does not run: $(cat "$work/said")"

script prolog 1 || gives_up 'the prolog of the first job'
unit_is active
pid=$(ctl show -P MainPID refrain@imagenet)
reads
script prolog 2 || gives_up 'the prolog of the second job'
expect 'the daemon for both' "$(ctl show -P MainPID refrain@imagenet)" "$pid"
script epilog 1 || gives_up 'the epilog of the first job'
unit_is active
reads
script epilog 2 || gives_up 'the epilog of the second job'
unit_is inactive
expect 'jobs that are left' "$(inside /bin/ls /run/refrain/jobs/imagenet)" ''

note 'a unit that ran before'
ctl start refrain@imagenet || gives_up 'the unit does not start'
script prolog 3 || gives_up 'the prolog'
script epilog 3 || gives_up 'the epilog'
unit_is active
ctl stop refrain@imagenet

note 'a source that is away'
mv "$root/srv/data" "$root/srv/away"
! script prolog 4 || fail 'the prolog succeeds without a source'
grep -q "job 4: no mount 'imagenet'" "$work/said" || gives_up 'no reason'
# The unit continues to try. The job has not begun, but its epilog is called.
script epilog 4 || gives_up 'the epilog of a job that did not begin'
unit_is inactive
mv "$root/srv/away" "$root/srv/data"
script prolog 5 || gives_up 'the prolog with a source that is back'
reads
script epilog 5 || gives_up 'the epilog'
unit_is inactive

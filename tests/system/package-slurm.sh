#!/bin/sh
# SPDX-License-Identifier: MIT
#
# package-slurm.sh [linuxproc|cgroup]: examples/slurm on a real slurmctld and
# slurmd in namespaces of their own. They find the processes of a job by their
# parents or by a control group; without an argument, both are tested. Two jobs
# share one mount, which outlives the job that made it, even if that job was
# killed, and is unmounted after the last job. A mount that existed before is
# not unmounted, and if a mount cannot be made, the job does not start.
set -eu
if [ $# -eq 0 ]; then
	status=0
	for tracked in linuxproc cgroup; do
		sh "$0" $tracked || status=$?
		[ $status -eq 0 ] || exit $status
	done
	exit 0
fi
proctrack=$1
name=package-slurm
# Use a network namespace with only the loopback device.
if [ -z "${REFRAIN_TEST_NETWORK:-}" ] && unshare -n true 2>/dev/null; then
	REFRAIN_TEST_NETWORK=1 exec unshare -n sh "$0" "$@"
fi
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires root fuse slurmctld slurmd munged sbatch flock ip
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
[ -n "${REFRAIN_TEST_NETWORK:-}" ] || skip 'needs a network namespace'
# Slurm resolves names only if there is an address other than 127.0.0.1. This
# one is reserved for documentation.
{ ip link set lo up && ip address add 192.0.2.1/32 dev lo; } ||
	skip 'cannot set up the loopback device'
examples=$(cd "${srcdir:-.}/examples/slurm" && pwd)

# The test has its own /etc and /run.
mkdir "$work/etc" "$work/etc.work" "$work/state" "$work/spool"
mount -t overlay overlay /etc \
	-o "lowerdir=/etc,upperdir=$work/etc,workdir=$work/etc.work" \
	2>/dev/null || skip 'cannot mount an overlay'
mount -t tmpfs tmpfs /run 2>/dev/null || skip 'cannot mount a tmpfs'
mkdir -p /etc/refrain /etc/slurm/refrain
cp "$examples/prolog" "$examples/epilog" "$examples/refrain-jobs" \
	/etc/slurm/refrain
make_tree "$src" 6 60 200000
cat >/etc/refrain/imagenet.conf <<END
SOURCE=$src
MOUNTPOINT=$mnt
OPTIONS=--cache $work/cache:8M --allow-other
END
cat >/etc/refrain/slurm.conf <<END
PATH=$PWD:\$PATH
mounts=imagenet
END

# -- Slurm --------------------------------------------------------------------

host=$(hostname -s)
SLURM_CONF=$work/slurm.conf
export SLURM_CONF
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$short/munge
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/$proctrack
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
ReturnToService=2
KillWait=1
Prolog=/etc/slurm/refrain/prolog
Epilog=/etc/slurm/refrain/epilog
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END

# Slurm tracks processes with the freezer, so find the version of control groups
# that has it.
if [ "$proctrack" = cgroup ]; then
	if grep -q ' /sys/fs/cgroup/freezer ' /proc/self/mounts; then
		version=1
		group_ends_with_test "/sys/fs/cgroup/freezer/slurm_$host"
	elif grep -q ' /sys/fs/cgroup cgroup2 ' /proc/self/mounts; then
		version=2
	else
		skip 'there are no control groups'
	fi
	cat >"$work/cgroup.conf" <<END
CgroupPlugin=cgroup/v$version
CgroupMountpoint=/sys/fs/cgroup
END
fi

failed_in_slurm() {
	for log in slurmctld slurmd munged; do
		echo "-- $log"
		tail -n 15 "$work/$log.log" 2>/dev/null || :
	done
	fail "$*"
}

# The key is used by this test only.
head -c 128 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
munged --foreground --force --key-file="$work/munge.key" \
	--socket="$short/munge" --pid-file="$work/munged.pid" \
	--seed-file="$work/munge.seed" --log-file="$work/munged.log" \
	>"$work/munged.out" 2>&1 &
ends_with_test $!
wait_for 20 test -S "$short/munge" || failed_in_slurm 'munged does not start'
slurmctld -D >"$work/slurmctld.out" 2>&1 &
controller=$!
ends_with_test $controller
slurmd -D >"$work/slurmd.out" 2>&1 &
slurmd=$!
ends_with_test $slurmd

# sinfo waits long if there is no controller.
node_is() {
	has_ended $controller || has_ended $slurmd ||
		timeout 10 sinfo -h -o %T 2>/dev/null | grep -q "^$1"
}

wait_for 60 node_is idle || failed_in_slurm 'the node does not get idle'
! has_ended $controller || failed_in_slurm 'slurmctld has ended'
! has_ended $slurmd || failed_in_slurm 'slurmd has ended'

# -- Jobs ---------------------------------------------------------------------

# A job that checks every byte, reports that, and continues until it is told to
# end.
cat >"$work/job" <<END
#!/bin/sh
cd "$mnt" && sha256sum --quiet --strict -c "$src.sums" || exit
echo \$\$ >"$work/read.\$SLURM_JOB_ID"
until [ -e "$work/end.\$SLURM_JOB_ID" ]; do sleep 0.1; done
sha256sum --quiet --strict -c "$src.sums" && touch "$work/again.\$SLURM_JOB_ID"
END

# submit: submit the job; $job is its number.
submit() {
	job=$(sbatch --parsable --output="$work/out.%j" "$work/job") ||
		failed_in_slurm 'sbatch'
}

has_read() {
	[ -s "$work/read.$1" ]
}

reads() {
	wait_for 60 has_read "$1" || {
		cat "$work/out.$1" 2>/dev/null || :
		failed_in_slurm "job $1 does not read: $(squeue 2>&1)"
	}
}

has_left() {
	[ ! -e "/run/refrain/jobs/imagenet/$1" ]
}

left() {
	wait_for 60 has_left "$1" || failed_in_slurm "job $1 does not leave"
}

is_mounted() {
	grep -q " $mnt .* fuse.refrain " /proc/self/mountinfo
}

not_mounted() {
	! is_mounted
}

note "proctrack/$proctrack"
submit
first=$job
reads "$first"
# The daemon must not be in a group of the job, because it would end with the
# job.
expect 'the control group of the daemon' \
	"$(grep -c '/job_' "/proc/$(status_field pid)/cgroup" || :)" 0
[ "$proctrack" = linuxproc ] ||
	grep -q "/job_$first" "/proc/$(cat "$work/read.$first")/cgroup" ||
	failed_in_slurm 'the job has no control group'
pid=$(status_field pid)
expect held "$(status_field held)" yes
submit
second=$job
reads "$second"
expect 'the daemon for both' "$(status_field pid)" "$pid"
expect 'mounts' "$(grep -c " $mnt " /proc/self/mountinfo)" 1
expect 'their jobs' "$(cd /run/refrain/jobs/imagenet && echo *)" \
	"$first $second"

note 'the job that made the mount is killed'
kill -9 "$(cat "$work/read.$first")"
left "$first"
expect 'the daemon' "$(status_field pid)" "$pid"
touch "$work/end.$second"
left "$second"
[ -e "$work/again.$second" ] ||
	failed_in_slurm "the second job: $(cat "$work/out.$second")"
wait_for 30 not_mounted || failed_in_slurm 'the mount stays after the last job'
wait_for 20 has_ended "$pid" || failed_in_slurm 'the daemon stays'
wait_for 30 node_is idle || failed_in_slurm "the node: $(sinfo)"

note 'a job that is cancelled'
submit
reads "$job"
scancel "$job"
left "$job"
wait_for 30 not_mounted || failed_in_slurm 'the mount stays after scancel'

note 'a mount that was there before'
"$refrain" mount "$src" "$mnt" --cache "$work/cache:8M" ||
	fail 'cannot mount'
pid=$(status_field pid)
submit
reads "$job"
touch "$work/end.$job"
left "$job"
wait_for 30 node_is idle || failed_in_slurm "the node: $(sinfo)"
is_mounted || fail 'a mount of others was taken down'
expect 'the daemon' "$(status_field pid)" "$pid"
"$refrain" umount "$mnt" || fail 'cannot unmount'

note 'a source that is away'
mv "$src" "$src.away"
submit
wait_for 60 node_is drain || failed_in_slurm "the node: $(sinfo)"
not_mounted || fail 'it is mounted'
[ ! -e "$work/read.$job" ] || fail 'the job was started'
mv "$src.away" "$src"
left "$job"
scancel "$job"
scontrol update nodename="$host" state=resume ||
	failed_in_slurm 'cannot resume the node'
submit
reads "$job"
touch "$work/end.$job"
left "$job"
wait_for 30 not_mounted || failed_in_slurm 'the mount stays'
expect 'jobs that are left' "$(ls /run/refrain/jobs/imagenet)" ''

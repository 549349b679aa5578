# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034 # variables are for scripts that source it
#
# A deliberately slow disk: an ext4 image on a loop device, and a control group
# whose reads of it are throttled. Sourced; keeps its state in variables that
# begin with slow_. Needs root, or sudo without a password.
#
#   slow_disk_make WORK DATA RATE [SPARE]
#                                   copy DATA to the disk, mount it at $slow_dir:
#                                   read-only, or with SPARE MB of room to write;
#                                   returns 1 and sets $slow_why on failure
#   slow_disk_run COMMAND...        run with reads throttled to RATE bytes/s
#   slow_disk_rate RATE             throttle to RATE from now on
#   slow_disk_kill                  kill what slow_disk_run started
#   slow_disk_remove                undo everything that was set up

slow_dir='' slow_loop='' slow_device='' slow_group='' slow_sudo=''
slow_why=''
PATH=$PATH:/usr/sbin:/sbin

slow_root() {
	if [ "$(id -u)" -eq 0 ]; then
		slow_sudo=''
	elif sudo -n true 2>/dev/null; then
		slow_sudo='sudo -n'
	else
		slow_why='that takes root'
		return 1
	fi
}

# Write $1 to the file $2, as root.
slow_put() {
	# shellcheck disable=SC2086 # a command and its option
	printf '%s\n' "$1" | $slow_sudo tee "$2" >/dev/null 2>&1
}

# Throttle the existing group. Returns 1 if it does not throttle.
slow_disk_rate() {
	if [ -e "$slow_group/io.max" ]; then
		slow_put "$slow_device rbps=$1" "$slow_group/io.max"
	else
		slow_put "$slow_device $1" \
			"$slow_group/blkio.throttle.read_bps_device"
	fi
}

# Throttle with version 1 of control groups if that has the blkio controller
# (version 2 may be mounted as well), otherwise with version 2.
slow_limit() {
	slow_device=$1
	v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)blkio(,|$)/ { print $2; exit }' \
		/proc/mounts)
	v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [ -n "$v1" ]; then
		slow_group=$v1/refrain-slow-$$
		# shellcheck disable=SC2086
		$slow_sudo mkdir "$slow_group" 2>/dev/null &&
			slow_disk_rate "$2" && return 0
	elif [ -n "$v2" ]; then
		slow_group=$v2/refrain-slow-$$
		slow_put +io "$v2/cgroup.subtree_control"
		# shellcheck disable=SC2086
		$slow_sudo mkdir "$slow_group" 2>/dev/null &&
			slow_disk_rate "$2" && return 0
	fi
	slow_why='no control group can throttle a device here'
	return 1
}

slow_disk_make() {
	work=$1 data=$2 rate=$3 spare=${4:-0}
	ro=--read-only
	[ "$spare" -eq 0 ] || ro=''
	slow_root || return 1
	slow_dir=$work/slow
	# Room for the data, the inodes and a journal.
	mib=$(($(du -sm "$data" | cut -f1) * 11 / 10 + 64 + spare))
	mkdir "$slow_dir" && truncate -s "${mib}M" "$work/slow.img" || return 1
	# Without lost+found, which only root can read.
	mkfs.ext4 -q -F -d "$data" "$work/slow.img" >/dev/null 2>&1 || {
		slow_why='mkfs.ext4 failed'
		return 1
	}
	debugfs -w -R 'rmdir lost+found' "$work/slow.img" >/dev/null 2>&1
	# shellcheck disable=SC2086
	slow_loop=$($slow_sudo losetup --find --show $ro \
		"$work/slow.img" 2>/dev/null) || {
		slow_why='no loop device is to be had'
		return 1
	}
	# shellcheck disable=SC2086
	$slow_sudo mount ${ro:+-o ro} "$slow_loop" "$slow_dir" 2>/dev/null || {
		slow_why='the loop device cannot be mounted'
		return 1
	}
	slow_limit "$(cat "/sys/block/${slow_loop#/dev/}/dev")" "$rate"
}

# The shell that becomes the command enters the group first, so the processes
# and threads of the command are in it, too.
slow_disk_run() {
	# shellcheck disable=SC2016 # for the other shell
	sh -c 'printf "%s\n" $$ | $1 tee "$2/cgroup.procs" >/dev/null || exit
		shift 2
		exec "$@"' sh "$slow_sudo" "$slow_group" "$@"
}

slow_disk_kill() {
	while read -r pid; do
		kill "$pid" 2>/dev/null
	done <"$slow_group/cgroup.procs"
}

# A program that has just closed a file may still use it.
slow_unmount() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		# shellcheck disable=SC2086
		$slow_sudo umount "$slow_dir" && return
		sleep 0.2
	done
}

slow_disk_remove() {
	# shellcheck disable=SC2086
	{
		[ -n "$slow_dir" ] && slow_unmount
		[ -n "$slow_loop" ] && $slow_sudo losetup -d "$slow_loop"
		[ -n "$slow_group" ] && $slow_sudo rmdir "$slow_group"
	} 2>/dev/null
	slow_dir='' slow_loop='' slow_group=''
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# Memory control groups of a test. Sourced after lib.sh.
MIB=1048576
top=
group=

# find_controller: set $top to a directory in which groups can be made, and
# $file to the file with a group's limit. Version 2 must enable the controller
# for the groups below; a container may be unable to do that.
find_controller() {
	top=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ {
			print $2
			exit
		}' /proc/mounts)
	file=memory.limit_in_bytes
	[ -z "$top" ] || return 0
	top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	file=memory.max
	[ -n "$top" ] || return 1
	echo +memory 2>/dev/null >"$top/cgroup.subtree_control" || :
}

# set_group_limit MIB: set the limit of $group. Fails if the kernel cannot make
# it that small.
set_group_limit() {
	echo $(($1 * MIB)) 2>/dev/null >"$group/$file"
}

# make_group MIB: make $group. Returns 1 if it cannot be made.
make_group() {
	group=$top/refrain-memory-$$
	mkdir "$group" 2>/dev/null || return 1
	group_ends_with_test "$group"
	set_group_limit "$1" && return 0
	rmdir "$group"
	return 1
}

end_group() {
	[ -z "$group" ] || wait_for 20 rmdir "$group" ||
		fail 'the control group stays'
	group=
}

# group_kills: print how many processes the kernel has killed in $group.
group_kills() {
	cat "$group/memory.oom_control" "$group/memory.events" 2>/dev/null |
		awk '$1 == "oom_kill" { print $2 }'
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Faults below a mount, and their effects on readers: a table of {origin, cache
# disk, memory} x {delay, error, short, corrupt, vanish, full}. In every cell,
# readers get the right bytes or an error within the stated time, nothing hangs,
# the daemon stays alive, the fault is counted, and after its end everything
# works as before.
#
# REFRAIN_FAULTS=all runs every cell, and a list of names runs those cells.
# Without it, the quick cells run.
set -eu
name=faults
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse drop_caches python3 mkfs.ext4 losetup

quick='origin-error origin-vanish disk-error disk-full disk-quota disk-inodes
	disk-readonly memory-full'
timeout_s=2

make_tree "$src" 3 120 200000
"$reader" "$src" --make-sums "$work/sums" >/dev/null
items=$(find "$src" -type f -size +0 | wc -l)
cache=$work/cache
disk=$work/disk
loop=

# -- Steps --------------------------------------------------------------------

start() {
	start_mount "$src" "$mnt" --timeout $timeout_s --fault '' "$@"
}

# epoch: read all files from the daemon, without the kernel's caches, and check
# the bytes.
epoch() {
	drop_all_caches
	"$reader" "$mnt" --threads 4 --sums "$work/sums" >"$work/read" 2>&1 ||
		fail "$1: $(cat "$work/read")"
}

# epoch_or_error: like epoch, but errors are allowed within the time limit.
# Wrong bytes never are.
epoch_or_error() {
	drop_all_caches
	began=$(date +%s)
	! timeout $((60 * patience)) "$reader" "$mnt" --threads 64 \
		--sums "$work/sums" >"$work/read" 2>&1 || return 0
	[ $(($(date +%s) - began)) -lt $((60 * patience)) ] || fail "$1 hangs"
	! grep 'contents differ' "$work/read" || fail "$1: wrong bytes"
}

whole() {
	[ "$(status_field entries)" -eq "$items" ]
}

# Items still in staging are cached when they are fetched again.
cached_by_reading() {
	epoch 'after it was mended'
	whole
}

# mended: check that caching continues where it had to stop, so that in the end
# everything is a hit.
mended() {
	wait_for 20 cached_by_reading ||
		fail "$(status_field entries) entries of $items"
	before=$(status_field misses)
	epoch 'after it was cached'
	expect 'misses of a cached epoch' "$(status_field misses)" "$before"
	"$refrain" verify "$mnt" >"$work/verify" || fail "$(cat "$work/verify")"
	expect evictions "$(status_field evictions)" 0
}

# counted FIELD: check that the counter is not 0.
counted() {
	[ "$(status_field "$1")" -gt 0 ] || fail "$1 is 0"
}

fault() {
	"$refrain" fault "$mnt" "$1" || fail "cannot inject '$1'"
}

# every_second: read every second file, so that one half is cached.
every_second() {
	(cd "$src" && find . -type f -size +0 | sort | sed 's|^\./||' |
		awk 'NR % 2') >"$work/half"
	"$reader" "$mnt" --threads 4 --files-from "$work/half" >/dev/null ||
		fail 'cannot read one half'
}

half_right() {
	drop_all_caches
	timeout $((20 * patience)) "$reader" "$mnt" --threads 4 \
		--files-from "$work/half" >"$work/read" 2>&1 ||
		fail "what is cached: $(cat "$work/read")"
}

# make_disk MIB [OPTION ...]: mount a new ext4 at $disk.
make_disk() {
	truncate -s "$1M" "$work/disk.img"
	shift
	mkfs.ext4 -q -F -m 0 "$@" "$work/disk.img" 2>/dev/null
	mkdir -p "$disk"
	mount -o loop "$work/disk.img" "$disk" 2>/dev/null ||
		skip 'no loop device is to be had'
	rmdir "$disk/lost+found"
}

# make_failing_disk: mount a disk at $disk that fails in the way that the file
# $work/fails selects.
make_failing_disk() {
	mkdir -p "$disk"
	mkdir -m 700 "$work/platter"
	"$helpers/failing_fs" "$work/platter" "$disk" "$work/fails" &
	wait_for 10 mountpoint -q "$disk" || fail 'no disk that fails'
}

# disk_fails HOW: read an epoch while the disk fails, and check that caching
# works when the disk does.
disk_fails() {
	before=$(status_field tier_errors)
	echo "$1" >"$work/fails"
	epoch "with a disk that fails ($1)"
	[ "$(status_field tier_errors)" -gt "$before" ] ||
		fail "errors of the disk ($1) are not counted"
	rm "$work/fails"
	mended
}

no_loop() {
	[ -z "$(losetup -j "$work/disk.img")" ]
}

remove_disk() {
	umount "$disk"
	rm -f "$work/disk.img"
}

# -- The origin ---------------------------------------------------------------

origin_delay() {
	start --cache "$cache:64M"
	fault delay=20ms
	epoch 'with a slow origin'
	every_second
	fault stall=1
	half_right # hits do not wait for the origin
	fault ''
	mended
}

origin_error() {
	start --cache "$cache:64M"
	every_second
	fault error=0.2
	epoch 'with errors'
	counted origin_retries
	counted origin_errors
	stop_mount
	rm -rf "$cache"
	start --cache "$cache:64M"
	every_second
	fault error=1
	epoch_or_error 'with nothing but errors'
	counted origin_failures
	half_right
	fault ''
	mended
}

origin_short() {
	start --cache "$cache:64M"
	fault short=0.2
	epoch 'with short reads'
	counted origin_retries
	fault ''
	mended
}

# A file is changed in place before it was fetched. Its size or time changes,
# too: otherwise no program could tell the versions apart.
origin_corrupt() {
	start --cache "$cache:64M"
	scan_through
	file=$src/d3/e1/f00031
	head -c 70001 /dev/urandom >"$file"
	"$reader" "$src" --make-sums "$work/sums.new" >/dev/null
	drop_all_caches
	# The first reader may get an error, because its version is gone.
	"$reader" "$mnt" --threads 4 >/dev/null 2>&1 || :
	"$refrain" refresh "$mnt" >/dev/null
	mv "$work/sums.new" "$work/sums"
	mended
}

# The disk of the source disappears for a while.
origin_vanish() {
	truncate -s 64M "$work/source.img"
	mkfs.ext4 -q -F -d "$src" "$work/source.img" 2>/dev/null
	cp "$work/source.img" "$work/source.copy"
	loop=$(losetup -f --show --direct-io=on "$work/source.img") ||
		skip 'no loop device is to be had'
	mkdir -p "$work/other"
	mount -o ro "$loop" "$work/other"
	start_mount "$work/other" "$mnt" --timeout $timeout_s \
		--cache "$cache:64M"
	scan_through
	every_second
	known=$(status_field files_known)
	truncate -s 0 "$work/source.img"
	half_right
	epoch_or_error 'without the source'
	counted origin_failures
	half_right
	cat "$work/source.copy" >"$work/source.img"
	expect 'files that are known' "$(status_field files_known)" "$known"
	expect invalidated "$(status_field invalidated)" 0
	mended
	stop_mount
	umount "$work/other"
	losetup -d "$loop"
	rm -f "$work"/source.*
}

# -- The cache's disk ---------------------------------------------------------

# The disk is frozen, so writers wait. Readers do not.
disk_delay() {
	make_disk 64
	start --cache "$disk:40M"
	every_second
	wait_for 20 has_some || fail 'nothing was cached'
	fsfreeze -f "$disk"
	( drop_all_caches
	timeout $((20 * patience)) "$reader" "$mnt" --threads 4 \
		--sums "$work/sums" ) >"$work/read" 2>&1 || {
		fsfreeze -u "$disk"
		fail "with a frozen disk: $(cat "$work/read")"
	}
	fsfreeze -u "$disk"
	mended
	stop_mount
	remove_disk
}

has_some() {
	[ "$(status_field entries)" -gt 0 ]
}

# First every read and write of the disk fails, then every operation; once with
# one half cached, and once with everything. A mount that starts meanwhile
# reports the cause.
disk_error() {
	make_failing_disk
	start --cache "$disk:40M"
	every_second
	wait_for 20 has_some || fail 'nothing was cached'
	disk_fails data
	disk_fails data
	disk_fails all
	echo all >"$work/fails"
	half_right
	stop_mount
	got=0
	"$refrain" mount "$src" "$mnt" --cache "$disk:40M" 2>"$work/said" ||
		got=$?
	expect 'exit status of a mount with a failing disk' $got 1
	grep -q 'Input/output error' "$work/said" || fail "$(cat "$work/said")"
	echo data >"$work/fails"
	! "$refrain" mount "$src" "$mnt" --cache "$disk:40M" 2>"$work/said" ||
		fail 'a tier that cannot be read is mounted'
	grep -q 'Input/output error; .*use another' "$work/said" ||
		fail "$(cat "$work/said")"
	echo data manifest >"$work/fails"
	start --cache "$disk:40M"
	counted tier_errors
	mended
	stop_mount
	rm "$work/fails"
	start --cache "$disk:40M"
	mended
	stop_mount
	umount "$disk"
	rm -rf "$work/platter"
}

# The device of the disk disappears, and comes back.
disk_gone() {
	make_disk 64
	start --cache "$disk:40M"
	epoch 'at first'
	wait_for 20 whole || fail 'not everything was cached'
	sync -f "$disk"
	losetup --direct-io=on "$(findmnt -no SOURCE "$disk")" ||
		skip 'no direct I/O on a loop device here'
	cp "$work/disk.img" "$work/disk.copy"
	drop_all_caches
	truncate -s 0 "$work/disk.img"
	"$reader" "$mnt" --threads 4 --sums "$work/sums" >"$work/read" 2>&1 ||
		fail "with a failing disk: $(cat "$work/read")"
	[ $(($(status_field tier_errors) + $(status_field entries_lost) + \
		$(status_field checksum_errors))) -gt 0 ] ||
		fail 'nothing was counted'
	cat "$work/disk.copy" >"$work/disk.img"
	epoch 'after the disk came back'
	# Losses in the file system itself are not tested here.
	kill_mount
	umount -l "$mnt"
	umount -l "$disk"
	rm -f "$work"/disk.*
}

# An error of the file system has made the disk read-only; it is repaired by
# hand.
disk_readonly() {
	make_disk 64 -e remount-ro
	start --cache "$disk:40M"
	every_second
	wait_for 20 has_some || fail 'nothing was cached'
	entries=$(status_field entries)
	sync -f "$disk"
	loop=$(findmnt -no SOURCE "$disk")
	echo drill >"/sys/fs/ext4/${loop#/dev/}/trigger_fs_error" ||
		skip 'this ext4 has no trigger_fs_error'
	! touch "$disk/x" 2>/dev/null || fail 'the disk is not read-only'
	epoch 'with a read-only disk'
	counted tier_errors
	half_right
	stop_mount
	umount "$disk"
	# A loop device that still exists would show its cached content.
	wait_for 10 no_loop || fail 'the loop device stays'
	# e2fsck returns 0 when nothing is left to be repaired.
	tries=3
	until e2fsck -fy "$work/disk.img" >"$work/fsck" 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "e2fsck: $(tail -n 5 "$work/fsck")"
	done
	mount -o loop "$work/disk.img" "$disk"
	rmdir "$disk/lost+found" 2>/dev/null || :
	start --cache "$disk:40M"
	[ "$(status_field entries)" -ge $((entries / 2)) ] ||
		fail "$(status_field entries) entries of $entries are left"
	mended
	stop_mount
	remove_disk
}

# some_entries: list a third of the entries in $cache.
some_entries() {
	find "$cache" -mindepth 2 -path '*/??/*-*' -type f | sort |
		awk 'NR % 3 == 0'
}

disk_short() {
	start --cache "$cache:64M"
	epoch 'at first'
	wait_for 20 whole || fail 'not everything was cached'
	some_entries | xargs truncate -s -9
	epoch 'with entries that were cut'
	counted checksum_errors
	mended
}

disk_corrupt() {
	start --cache "$cache:64M"
	epoch 'at first'
	wait_for 20 whole || fail 'not everything was cached'
	some_entries | while read -r entry; do
		printf '\377\000\377' |
			dd of="$entry" bs=1 conv=notrunc status=none
	done
	epoch 'with entries that were overwritten'
	counted checksum_errors
	mended
}

disk_vanish() {
	start --cache "$cache:64M"
	epoch 'at first'
	wait_for 20 whole || fail 'not everything was cached'
	find "$cache" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
	epoch 'without entries'
	counted entries_lost
	mended
}

# fill_up DIR: write files until nothing more fits.
fill_up() {
	dd if=/dev/zero of="$1/filler" bs=64K 2>/dev/null || :
	dd if=/dev/zero of="$1/filler.end" bs=512 2>/dev/null || :
}

# Another program has filled the disk, and then a tmpfs.
disk_full() {
	make_disk 64
	start --cache "$disk:40M"
	every_second
	fill_up "$disk"
	epoch 'with a full disk'
	counted tier_errors
	rm "$disk"/filler*
	mended
	stop_mount
	remove_disk
	mount -t tmpfs -o size=40M,mode=700 tmpfs "$disk"
	start --cache "$disk:32M"
	fill_up "$disk"
	epoch 'with a full tmpfs'
	counted tier_errors
	rm "$disk"/filler*
	mended
	stop_mount
	umount "$disk"
}

# The owner of the cache has a quota: a quota of btrfs, and a disk that reports
# one.
disk_quota() {
	if quota_disk; then
		start --cache "$disk:60M"
		every_second
		fill_up "$disk"
		epoch 'without quota'
		counted tier_errors
		rm "$disk"/filler*
		# removed files count until the file system is written
		sync -f "$disk"
		mended
		stop_mount
		remove_disk
	else
		note 'no btrfs here; EDQUOT comes from a stand-in only'
	fi
	make_failing_disk
	start --cache "$disk:40M"
	every_second
	disk_fails quota
	stop_mount
	umount "$disk"
	rm -rf "$work/platter"
}

# quota_disk: mount a btrfs of 40 MiB at $disk.
quota_disk() {
	truncate -s 128M "$work/disk.img"
	mkdir -p "$disk"
	mkfs.btrfs -q "$work/disk.img" >/dev/null 2>&1 &&
		mount -o loop "$work/disk.img" "$disk" 2>/dev/null ||
		return 1
	if btrfs quota enable "$disk" && btrfs qgroup limit 40M "$disk"; then
		return 0
	fi
	remove_disk
	return 1
}

disk_inodes() {
	make_disk 64 -N 600
	start --cache "$disk:40M"
	every_second
	n=0
	while touch "$disk/filler$n" 2>/dev/null; do n=$((n + 1)); done
	epoch 'without inodes'
	counted tier_errors
	find "$disk" -maxdepth 1 -name 'filler*' -delete
	mended
	stop_mount
	remove_disk
}

# -- Memory -------------------------------------------------------------------

# With any limit of its address space, the daemon either reports in one line why
# it cannot start, or starts. If it starts, reads may fail because memory is
# short, too.
memory_error() {
	kib=20000
	failed=0
	started=0
	while [ $kib -lt 2600000 ]; do
		status=0
		(
			# shellcheck disable=SC3045 # dash and bash have it
			ulimit -v $kib
			exec timeout 20 "$refrain" mount "$src" "$mnt" \
				--cache "$cache:64M"
		) >"$work/said" 2>&1 || status=$?
		case $status in
		0)
			started=$((started + 1))
			epoch_or_error "with $kib KiB"
			"$refrain" umount "$mnt" || fail 'cannot unmount' ;;
		1 | 127)
			failed=$((failed + 1))
			expect "lines with $kib KiB" \
				"$(wc -l <"$work/said")" 1
			;;
		*) fail "exit $status with $kib KiB: $(cat "$work/said")" ;;
		esac
		rm -rf "$cache"
		kib=$((kib * 5 / 4))
	done
	[ $started -gt 0 ] || fail 'it never starts'
	note "$failed limits were too small to start with"
}

# The control group has less memory than the data: the kernel reclaims memory
# and does not kill the daemon.
memory_full() {
	! ldd "$refrain" | grep -q -e libasan -e libtsan || {
		note 'a sanitizer alone needs more memory than that'
		return 0
	}
	v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ {
			print $2
			exit
		}' /proc/mounts)
	[ -n "$v1" ] || { note 'no memory control group'; return 0; }
	group=$v1/refrain-faults-$$
	mkdir "$group" || return 0
	echo $((24 << 20)) >"$group/memory.limit_in_bytes"
	start --cache "$cache:64M" --staging 4M --limit 512K \
		--chunk 512K
	echo "$daemon" >"$group/cgroup.procs"
	epoch 'with little memory'
	epoch 'with little memory, again'
	! daemon_gone || fail 'the daemon was killed'
	mended
	stop_mount
	rmdir "$group" || :
}

# -- The table ----------------------------------------------------------------

not_there() {
	printf '%-8s %-9s n/a: %s\n' "$1" "$2" "$3"
}

# cell PART FAULT EXPECTED
cell() {
	case " $wanted " in
	*" $1-$2 "* | ' all ') ;;
	*) return 0 ;;
	esac
	began=$(date +%s)
	"$1_$2"
	[ -z "$daemon" ] || stop_mount
	rm -rf "$cache"
	printf '%-8s %-9s ok, %2d s: %s\n' "$1" "$2" \
		$(($(date +%s) - began)) "$3"
	cells=$((cells + 1))
}

# Separate the words by one blank each.
# shellcheck disable=SC2086,SC2116
wanted=$(echo ${REFRAIN_FAULTS:-$quick})
cells=0
cell origin delay 'right bytes; hits do not wait'
cell origin error 'retried, right bytes; at last EIO for what is not cached'
cell origin short 'retried, right bytes'
cell origin corrupt 'a version is whole; the new one after refresh'
cell origin vanish 'hits go on, others EIO in time; nothing is forgotten'
not_there origin full 'nothing is ever written to it'
cell disk delay 'right bytes while nothing can be written'
cell disk error 'right bytes from the origin, counted; resumes'
cell disk gone 'right bytes from the origin, counted'
cell disk readonly 'right bytes from the origin, counted; resumes'
cell disk short 'cut entries are dropped, counted, fetched again'
cell disk corrupt 'bad entries are dropped, counted, fetched again'
cell disk vanish 'lost entries are counted and fetched again'
cell disk full 'right bytes from the origin, counted; resumes'
cell disk quota 'right bytes from the origin, counted; resumes'
cell disk inodes 'right bytes from the origin, counted; resumes'
not_there memory delay 'that is the cell of the slow disk that pages lie on'
cell memory error 'mounts, or one line says why not'
not_there memory short 'an allocation is whole or fails'
not_there memory corrupt 'what memory holds is not checked again'
not_there memory vanish 'that is kill -9: mount-kill.sh'
cell memory full 'staging stays in its bound; reclaimed, not killed'
note "$cells cells"

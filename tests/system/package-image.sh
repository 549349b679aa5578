#!/bin/sh
# SPDX-License-Identifier: MIT
#
# packaging/Containerfile, built from the tree of `make dist` without a network,
# on bases that have the packages. The image is little larger than its base. In
# a user namespace, with /dev/fuse and no other device, it mounts and reads;
# with a connection that another program has opened, it needs no rights. Its
# memory stays within the limit of its container. The image for Fluid is built
# on it, by its own recipe, and mounts what Fluid describes.
#
# REFRAIN_ROOTS keeps the bases between runs. IMAGE_CFLAGS are for a quick
# build.
set -eu
name=package-image
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/podman-lib.sh
. "${srcdir:-.}/tests/system/podman-lib.sh"
requires python3
above_base_most_mib=60
recipe=$here/../../packaging/Containerfile

# packages N: list the packages of the N-th stage of the recipe.
packages() {
	sed -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' "$recipe" |
		sed -n 's/.*RUN packages="\([^"]*\)".*/\1/p' | sed -n "$1p" |
		tr -s ' \t' ,
}

# base NAME PACKAGES: make an image of Debian with these packages.
base() {
	tar=${REFRAIN_ROOTS:-$work}/debian-$1.tar
	[ -s "$tar" ] || make_debian "$tar" "$2"
	pod import --change 'ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin' "$tar" \
		"localhost/$1" >"$work/said" 2>&1 ||
		skip "podman imports no image: $(tail -n 1 "$work/said")"
}

base image-build "$(packages 1)"
base image-run "$(packages 2)"
base image-bare ''
base image-fluid "$(packages 2),jq"

make -s distdir distdir="$work/tree" top_distdir="$work/tree" \
	>"$work/said" 2>&1 || fail "make distdir: $(tail -n 3 "$work/said")"

# build TAG BASE: build an image. Compiled files are used again for the next
# one.
build() {
	pod build --network=none --layers \
		--build-arg BUILD_BASE=localhost/image-build \
		--build-arg RUN_BASE="localhost/$2" \
		${IMAGE_CFLAGS:+--build-arg "CFLAGS=$IMAGE_CFLAGS"} \
		--tag "localhost/$1" -f "$recipe" "$work/tree" \
		>"$work/build.log" 2>&1 ||
		fail "$(tail -n 15 "$work/build.log")"
}
build refrain image-run

size() {
	pod image inspect --format '{{.Size}}' "localhost/$1"
}

above=$((($(size refrain) - $(size image-bare)) / 1048576))
note "the image is $above MiB above its base"
[ $above -le $above_base_most_mib ] || fail "the image is too large"
said=$(pod run --rm --network=none localhost/refrain --version) ||
	fail 'the image does not run'
expect 'its version' "$said" "$("$refrain" --version)"
pod run --rm --network=none --entrypoint /bin/sh localhost/refrain -c \
	'cd /usr/libexec/refrain && ldd /usr/bin/refrain *' \
	>"$work/said" 2>&1 || fail 'ldd'
! grep 'not found' "$work/said" || fail 'a library is missing'

# -- A mount in a user namespace ----------------------------------------------

# On other machines, every user may open /dev/fuse.
mkdir "$work/dev"
make_tree "$src" 8 40 200000
mknod -m 666 "$work/dev/fuse" c 10 229 || skip 'cannot make a device'
chmod -R a+rX "$src"
chmod a+x "$work"

waits_for_log() {
	pod logs "$1" 2>&1 | grep -q "$2" ||
		[ "$(pod inspect --format '{{.State.Running}}' "$1")" = false ]
}

ended_well() {
	expect "the status of $1" \
		"$(pod inspect --format '{{.State.ExitCode}}' "$1")" 0
}

# serves_metrics NAME: has `mount --metrics` started the exporter?
serves_metrics() {
	# shellcheck disable=SC2016 # of the shell that runs it
	pod exec "$1" /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/9760 &&
		printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' \
		>"$work/said" 2>&1
	grep -q '^refrain_up{.*} 1' "$work/said"
}

# mounts_as_user NAME MOUNTPOINT OPTION ... IMAGE COMMAND ...
mounts_as_user() {
	box=$1 at=$2
	shift 2
	pod run --detach --name "$box" --network=none \
		--uidmap 0:100000:65536 --gidmap 0:100000:65536 \
		--device "$work/dev/fuse:/dev/fuse" \
		--cap-drop ALL --cap-add SYS_ADMIN \
		--security-opt apparmor=unconfined --volume "$src:/source:ro" \
		--tmpfs /cache:mode=700 "$@" \
		>"$work/said" 2>&1 || fail "no container: $(cat "$work/said")"
	wait_for 30 waits_for_log "$box" mounted ||
		fail 'the mount does not start'
	pod exec "$box" /usr/bin/refrain status "$at" >"$work/said" 2>&1 ||
		fail "no mount: $(cat "$work/said"; pod logs "$box" 2>&1)"
	pod cp "$src.sums" "$box:/sums" || fail 'cp'
	pod exec --workdir "$at" "$box" \
		sha256sum --quiet --strict -c /sums || fail 'wrong bytes'
	wait_for 20 serves_metrics "$box" ||
		fail "no metrics: $(cat "$work/said")"
	pod stop --time 30 "$box" >/dev/null
	ended_well "$box"
}

mounts_as_user user /mnt localhost/refrain \
	mount --foreground /source /mnt --cache /cache/c:16M \
	--metrics 127.0.0.1:9760

# -- Limits of memory ---------------------------------------------------------

mkdir "$work/large"
for i in 1 2 3 4 5 6; do
	truncate -s 20000000 "$work/large/20.$i"
	truncate -s 12000000 "$work/large/12.$i"
done
for i in $(seq 200); do
	truncate -s 110000 "$work/large/small.$i"
done

# fits MIB WHERE SIZE OPTION ...: check that no process is killed in ten epochs,
# with MIB for the daemon and the readers, and a tier of SIZE in memory or on a
# disk.
fits() {
	box=fits-$1-$2 mib=$1 size=$3
	shift 3
	pod run --detach --name "$box" --network=none --memory "${mib}m" \
		--uidmap 0:100000:65536 --gidmap 0:100000:65536 \
		--device "$work/dev/fuse:/dev/fuse" \
		--cap-drop ALL --cap-add SYS_ADMIN \
		--security-opt apparmor=unconfined \
		--volume "$work/large:/source:ro" \
		--volume "$reader:/epoch-reader:ro" "$@" localhost/refrain \
		mount --foreground /source /mnt --cache "/cache/c:$size" \
		>"$work/said" 2>&1 || fail "no container: $(cat "$work/said")"
	wait_for 30 waits_for_log "$box" mounted ||
		fail 'the mount does not start'
	pod exec "$box" /epoch-reader --threads 16 --epochs 10 /mnt \
		>"$work/said" 2>&1 || fail "$box: $(tail -n 3 "$work/said"
	pod logs "$box" 2>&1 | tail -n 5)"
	pod exec "$box" /usr/bin/refrain status /mnt >"$work/said" 2>&1 ||
		fail "$box: the daemon was killed"
	! grep 'memory control group' "$work/said" ||
		fail "$box: it is said not to fit"
	pod stop --time 30 "$box" >/dev/null
	ended_well "$box"
	note "$box: ten epochs"
}

for mib in 128 256 1024; do
	mkdir "$work/disk.$mib"
	chown 100000:100000 "$work/disk.$mib"
	fits $mib disk 2G --volume "$work/disk.$mib:/cache"
done
fits 128 memory 24M --tmpfs /cache:mode=700
fits 256 memory 64M --tmpfs /cache:mode=700
fits 1024 memory 300M --tmpfs /cache:mode=700

# -- The image for Fluid ------------------------------------------------------

build refrain-with-jq image-fluid
fluid=$here/../../examples/kubernetes/fluid
pod build --network=none --build-arg REFRAIN=localhost/refrain-with-jq \
	--tag localhost/refrain-fluid -f "$fluid/Containerfile" "$fluid" \
	>"$work/build.log" 2>&1 || fail "$(tail -n 15 "$work/build.log")"
cat >"$work/config.json" <<END
{"mounts": [{"mountPoint": "local:///source", "name": "imagenet"}],
"runtimeOptions": {"cache": "/cache/imagenet:16M",
"metrics": "127.0.0.1:9760"},
"targetPath": "/runtime-mnt/thin/imagenet/thin-fuse"}
END
chmod a+r "$work/config.json"
mounts_as_user fluid /runtime-mnt/thin/imagenet/thin-fuse \
	--tmpfs /runtime-mnt:mode=755 \
	--volume "$work/config.json:/etc/fluid/config/config.json:ro" \
	localhost/refrain-fluid

# -- A connection of somebody else --------------------------------------------

mkfifo "$work/again"
# shellcheck disable=SC2016 # of the shell that runs it
python3 "$here/given_mount.py" mount "$mnt" sh -c '
	n=$1; shift
	[ "$n" = /dev/fd/3 ] || eval "exec 3<&${n##*/}"
	exec "$@"' sh FD \
	podman --root "$work/storage" --runroot "$short/pod" \
	--storage-driver "$driver" run --name given --network=none \
	--preserve-fds=1 --cap-drop ALL --volume "$src:/source:ro" \
	--tmpfs /cache:mode=700 localhost/refrain \
	mount /source /dev/fd/3 --cache /cache/c:16M \
	<"$work/again" >"$work/opened" 2>"$work/daemon.1.err" &
opener=$!
exec 8>"$work/again"
serves() {
	grep -q 'control socket' "$work/daemon.1.err" || has_ended $opener
}
wait_for 30 serves || fail 'it does not serve'
sums_right "$src.sums" "$mnt"
umount "$mnt" || fail 'cannot unmount'
ended() {
	[ -s "$work/opened" ]
}
wait_for 20 ended || fail 'the container does not end'
expect 'how it ended' "$(tail -n 1 "$work/opened")" 'ended 0'
exec 8>&-
wait $opener || fail "the program that mounts ends with $?"

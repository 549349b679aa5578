#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the files of examples/kubernetes with `podman kube play`; only the paths
# of the host are replaced. The mount of a node outlives its daemon while a
# reader checks every byte, and ends with its Pod; sidecars start and end in
# their order; the script for Fluid mounts in a container.
#
# podman has no DaemonSet, so a Deployment replaces it. It has no sidecars,
# either: they are containers that this script starts one by one, when the
# probes of the file succeed, like a kubelet.
set -eu
name=package-kubernetes
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires jq
# shellcheck source=tests/system/container-lib.sh
. "${srcdir:-.}/tests/system/container-lib.sh"
examples=$(cd "${srcdir:-.}/examples/kubernetes" && pwd)

data=$work/data
make_tree "$data" 3 60 400000
mkdir "$work/cache" "$work/mounts" "$work/play"
{ mount --bind "$work" "$work" && mount --make-rshared "$work"; } ||
	skip 'cannot share a mount'

# Give the images the names in the files, so that none is looked up elsewhere.
version=$(sed -n 's/^PACKAGE_VERSION = //p' Makefile)
cp "$here/kubernetes_train.py" "$root/train.py"
cp "$data.sums" "$root/train.sums"
cp "$examples/fluid/refrain-fluid" "$(command -v jq)" "$root/usr/bin"
ldd "$root/usr/bin/jq" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' |
	while read -r lib; do
		[ -e "$root$lib" ] || install -D "$lib" "$root$lib"
	done
tar -C "$root" -c . | pod import --change "ENV PATH=$bin:/usr/bin:/bin" - \
	"registry.example.com/refrain:$version" >"$work/said" 2>&1 ||
	skip "podman imports no image: $(tail -n 1 "$work/said")"
pod tag "registry.example.com/refrain:$version" \
	registry.example.com/trainer:1
rm -rf "$root"

played() {
	for box in $(pod ps --all --format '{{.Names}}'); do
		echo "-- $box"
		pod logs "$box" 2>&1 | tail -n 15
	done
	fail "$*"
}

# play FILE OPTION ...: run the file with the paths of this host.
play() {
	file=$1
	shift
	sed -e "s:path\: /net/imagenet:path\: $data:" \
		-e "s:path\: /var/lib/refrain/:path\: $work/:" \
		-e 's/^kind: DaemonSet/kind: Deployment/' \
		"$examples/$file" >"$work/play/$file"
	! grep -q 'path: /[nv]' "$work/play/$file" ||
		fail "a path of $file is left"
	case $file in
	sidecar.yaml)
		sed -i -e '/^  containers:/d' \
			-e 's/^  initContainers:/  containers:/' \
			"$work/play/$file"
		;;
	esac
	# In a directory with a file "refrain", podman would look for a recipe
	# of the image.
	(cd "$work/play" && pod kube play --network none "$@" "$file") \
		>"$work/said" 2>&1 || played "$file: $(cat "$work/said")"
}

# Stop it like a kubelet: SIGTERM, and SIGKILL if that does not help in time.
down() {
	pod pod stop --time 60 --all >"$work/said" 2>&1 ||
		played "$1 does not stop: $(cat "$work/said")"
	pod kube down "$work/play/$1" >"$work/said" 2>&1 ||
		played "$1 does not end: $(cat "$work/said")"
}

# probe FILE WHAT BOX [N]: run the command of the file's N-th probe in the
# container BOX.
probe() {
	words=$(sed -n "/$2/,/]/s/.*command: \[\(.*\)\].*/\1/p" \
		"$examples/$1" | sed -n "${4:-1}p" | tr -d ,)
	[ -n "$words" ] || fail "$1 has no $2"
	# shellcheck disable=SC2086 # words
	pod exec "$3" $words >"$work/probe" 2>&1
}

epochs() {
	pod logs "$1" 2>/dev/null | grep -c '^epoch ' || :
}

epochs_at_least() {
	[ "$(epochs "$1")" -ge "$2" ] || ! running "$1"
}

running() {
	[ "$(pod inspect --format '{{.State.Running}}' "$1")" = true ]
}

not_running() {
	! running "$1"
}

ended_well() {
	wait_for "$2" not_running "$1" || played "$1 does not end"
	expect "the status of $1" \
		"$(pod inspect --format '{{.State.ExitCode}}' "$1")" 0
}

field() {
	pod exec "$1" /usr/local/bin/status_field "$2" "$3" 2>/dev/null
}

recovered() {
	[ "$(field "$mounter" /refrain/imagenet recoveries)" = "$1" ]
}

nothing_mounted() {
	! mounts_below "$1" | grep -q '/imagenet$'
}

box_named() {
	pod ps --all --format '{{.Names}}' | grep -- "$1\$" ||
		played "there is no container $1"
}

# -- One mount a node ---------------------------------------------------------

play daemonset.yaml
mounter=$(box_named -mount)
wait_for 60 probe daemonset.yaml readinessProbe "$mounter" ||
	played "the mount is not ready: $(cat "$work/probe")"
expect held "$(field "$mounter" /refrain/imagenet held)" yes

touch "$work/mounts/go-on"
play reader.yaml
reader=$(box_named train-train)
killed=0
while [ $killed -lt "${REFRAIN_KILLS:-3}" ]; do
	seen=$(epochs "$reader")
	kill -9 "$(pod inspect --format '{{.State.Pid}}' "$mounter")"
	killed=$((killed + 1))
	wait_for 60 recovered $killed || played 'no daemon follows'
	wait_for 60 epochs_at_least "$reader" $((seen + 2)) ||
		played 'the reader waits'
	running "$reader" || played 'the reader has ended'
done
rm "$work/mounts/go-on"
ended_well "$reader" 60
note "a reader of $(epochs "$reader") epochs saw nothing of $killed kills"
down reader.yaml
down daemonset.yaml
nothing_mounted "$work/mounts" || fail 'the mount outlives its Pod'

# -- Sidecars -----------------------------------------------------------------

play sidecar.yaml --start=false
pod start train-holder >/dev/null
wait_for 30 probe sidecar.yaml startupProbe train-holder ||
	played "the holder does not start: $(cat "$work/probe")"
pod start train-mount >/dev/null
wait_for 60 probe sidecar.yaml startupProbe train-mount 2 ||
	played "the mount does not start: $(cat "$work/probe")"
expect held "$(field train-mount /refrain/imagenet held)" yes
pod start train-train >/dev/null
ended_well train-train 60
expect epochs "$(epochs train-train)" 1
for box in train-mount train-holder; do
	pod stop --time 30 $box >/dev/null
	ended_well $box 5
done
nothing_mounted "$work" || fail 'the mount outlives its sidecar'
down sidecar.yaml

# -- Fluid --------------------------------------------------------------------

cat >"$work/config.json" <<END
{"mounts": [{"mountPoint": "local:///source", "name": "imagenet"}],
"runtimeOptions": {"cache": "/cache/imagenet:80%"},
"targetPath": "/runtime-mnt/thin/default/imagenet/thin-fuse"}
END
pod run --detach --name fluid --network=none --privileged \
	--volume "$work/config.json:/etc/fluid/config/config.json:ro" \
	--volume "$data:/source:ro" --volume "$work/cache:/cache" \
	--volume "$work/mounts:/runtime-mnt:rshared" \
	"registry.example.com/refrain:$version" refrain-fluid \
	>"$work/said" 2>&1 || played "no container: $(cat "$work/said")"
fluid=$work/mounts/thin/default/imagenet/thin-fuse
fluid_mounted() {
	grep -q " $fluid .* fuse.refrain " /proc/self/mountinfo ||
		! running fluid
}
wait_for 60 fluid_mounted || played 'Fluid has no mount'
running fluid || played 'the container of Fluid has ended'
sums_right "$data.sums" "$fluid"
pod stop --time 30 fluid >/dev/null
ended_well fluid 5
! mounts_below "$work/mounts" | grep -q thin-fuse || fail 'a mount is left'

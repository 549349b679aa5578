# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# podman without a network, and roots of Debian for it, for tests that sourced
# lib.sh.

# shellcheck source=tests/system/root-lib.sh
. "${srcdir:-.}/tests/system/root-lib.sh"
requires root fuse podman mmdebstrap ldd
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
! ldd "$refrain" | grep -q -e libasan -e libtsan ||
	skip 'daemons of a sanitizer are slow to start'
here=$(cd "${srcdir:-.}/tests/system" && pwd)

# crun refuses a mixture of control groups of both versions.
! grep -q ' /sys/fs/cgroup/unified ' /proc/self/mountinfo ||
	umount /sys/fs/cgroup/unified || skip 'cannot unmount a control group'

# Do not set limits above those of this process, because root may lack the right
# to raise them.
CONTAINERS_CONF=$work/containers.conf
export CONTAINERS_CONF
cat >"$CONTAINERS_CONF" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
END

# Use layers where possible, because copies of images take long.
driver=vfs
mkdir "$work/lower" "$work/upper" "$work/over"
if mount -t overlay overlay "$work/over" \
	-o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/over" \
	2>/dev/null; then
	umount "$work/over"
	driver=overlay
fi

pod() {
	podman --root "$work/storage" --runroot "$short/pod" \
		--storage-driver $driver "$@"
}

before_cleanup() {
	pod rm --all --force --time 0 >/dev/null 2>&1 || :
}

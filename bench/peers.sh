#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The partitioned cache: 1, 2 and 3 hosts in network namespaces, connected by
# links of LINK Mbit/s, read a dataset of D MB from one loop device of RATE MB/s
# that all of them mount, in disjoint shards that change each epoch. Compares
# them with the same hosts without peers, whose memory is then a tier of the
# same size, and with hosts that have neither. Further scenes: a herd, engines
# that are too small, peers that fail, damaged values, and hosts that come and
# go. Each bar is printed with the measured value.
#
#   [D=300] [RATE=20] [LINK=400] [QUICK=1] [ONLY="epochs herd"] bench/peers.sh
#
# QUICK is 30 MB from 40 MB/s, by 1 and 3 hosts. Writes bench-peers.json, which
# bench/plot draws. Needs root, memcached, ip and tc.
set -u
name=peers
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

[ "$(id -u)" -eq 0 ] || bench_skip 'needs root'
for p in memcached ip tc nsenter unshare python3; do
	command -v $p >/dev/null || bench_skip "needs $p"
done
unshare -n true 2>/dev/null || bench_skip 'cannot make a network namespace'
if [ -n "${QUICK:-}" ]; then
	D=${D:-30} RATE=${RATE:-40} hosts='1 3'
else
	D=${D:-300} RATE=${RATE:-20} hosts='1 2 3'
fi
XDG_RUNTIME_DIR=$work/run
export XDG_RUNTIME_DIR
mkdir -m 700 "$work/run" "$work/data"
python3 "$bench/peers.py" make "$work/data" "$D" || bench_fail 'no dataset'
slow_disk_make "$work" "$work/data" $((RATE * 1000000)) ||
	bench_skip "$slow_why"
echo "peers: $D MB, origin $RATE MB/s, links ${LINK:-400} Mbit/s, $(machine)"
python3 "$bench/peers.py" run "$refrain" "$reader" "$work" "$slow_dir" \
	"$slow_group" "$RATE" "${LINK:-400}" "$hosts" "$json_out" "${ONLY:-}"
status=$?
awk -v top="$work/" 'index($5, top) == 1 && / - fuse/ { print $5 }' \
	/proc/self/mountinfo | while read -r m; do
	umount -l "$m"
done
exit $status

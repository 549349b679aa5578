#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The processor time that a trainer needs for a sample which another host has
# prepared, beside that for making it itself. The store is a memcached in a
# network namespace, on one processor; the trainer is on the other side of a
# veth pair, on another one. Bar: 0.2 ms for a sample of 150 KB.
#
# Needs root, two processors, memcached and ip. Writes
# bench-service-pulls.json.
set -u
name=service-pulls
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

[ "$(id -u)" -eq 0 ] || bench_skip 'needs root'
for p in memcached ip taskset; do
	command -v $p >/dev/null || bench_skip "needs $p"
done
[ "$(nproc)" -ge 2 ] || bench_skip 'needs two processors'
ns=refrain-pulls-$$
ip netns add "$ns" 2>/dev/null || bench_skip 'cannot make a network namespace'
store=
clean() {
	[ -z "$store" ] || kill "$store"
	ip netns del "$ns"
	bench_cleanup
}
trap clean EXIT

ip link add "rp$$" type veth peer name store netns "$ns" || exit 1
ip addr add 198.18.7.1/30 dev "rp$$" && ip link set "rp$$" up || exit 1
ip -n "$ns" addr add 198.18.7.2/30 dev store || exit 1
ip -n "$ns" link set store up || exit 1

ip netns exec "$ns" taskset -c 0 memcached -u root -l 198.18.7.2 -p 11212 \
	-m 256 -t 1 -M -o no_slab_reassign,slab_chunk_max=16384 &
store=$!
tries=100
while ! ip netns exec "$ns" ss -ltn | grep -q 198.18.7.2:11212; do
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || bench_fail 'memcached does not start'
	sleep 0.1
done

got=$(taskset -c 1 bench/service-pulls 198.18.7.2:11212 \
	"${SECONDS_A_TURN:-1}") ||
	bench_fail 'the store does not answer'
echo "$got" | tee "$json_out"
ms=$(echo "$got" | number pull_hash_f32_ms)
awk -v ms="$ms" 'BEGIN {
	printf "a pulled f32 sample: %.3f ms of processor time, bar 0.2\n", ms
	exit ms < 0.2 ? 0 : 1
}'

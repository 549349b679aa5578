#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The partitioned cache: three hosts, each a network namespace with a memcached
# and a mount. Checks the bytes that each epoch reads from the origin, however
# the reads are divided; many readers at once; an engine that is too small;
# hosts that come and go; two datasets at one path. peers-faults.sh has damaged
# values, servers that stop, and settings that are refused.
set -eu
name=peers
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 memcached ip tc nsenter unshare
unshare -n true 2>/dev/null || skip 'cannot make a network namespace'
python3 "$(dirname "$0")/peers_epochs.py" "$refrain" "$reader" "$helpers/herd" \
	"$work" "$@" || fail 'see above'

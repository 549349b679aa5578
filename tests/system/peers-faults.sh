#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Peers that fail: a server is killed or stopped in the middle of an epoch, the
# holder of a lease is killed, a proxy damages values, settings are refused. No
# read has wrong bytes, and none takes long. peers-epochs.sh has epochs without
# faults.
set -eu
name=peers-faults
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 memcached ip tc nsenter unshare
unshare -n true 2>/dev/null || skip 'cannot make a network namespace'
python3 "$(dirname "$0")/peers_faults.py" "$refrain" "$reader" \
	"$helpers/herd" "$work" "$@" || fail 'see above'

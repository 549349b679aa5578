#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A daemon takes over with a record of requests that has a damaged bit. The
# record is kept if the kernel cannot send requests again. Readers get an error,
# never bytes of another place, and the reason is logged. An undamaged record is
# used.
#
# REFRAIN_FLIPS is the number of bits that are flipped at random places (1), and
# REFRAIN_SEED selects them.
set -eu
name=survive-requests
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
requires fuse python3

here=$(cd "$(dirname "$0")" && pwd)
head -c 2000000 /dev/urandom >"$src/stalled"
REFRAIN_DISABLE=resend
export REFRAIN_DISABLE
flips=${REFRAIN_FLIPS:-1}
first_seed=${REFRAIN_SEED:-$(date +%N | sed 's/^0*//')}
seed=${first_seed:-1}
note "seed $seed; again with REFRAIN_SEED=$seed"
python3 "$here/survive_requests.py" "$refrain" "$src" "$mnt" "$work" \
	"$helpers/status_field" "$flips" "$seed" >"$work/said" 2>&1 ||
	fail "$(tail -n 20 "$work/said" "$work/log")"
while read -r line; do
	note "$line"
done <"$work/said"

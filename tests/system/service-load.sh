#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A loader that pulls samples from workers has the stream and the pixels of a
# lone loader: with echoes, types and layouts, ranks, damaged files, a restored
# state, without workers, and with a worker that has another dataset or secret.
# Options that do not work with a service are refused.
set -eu
name=service-load
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires memcached python3
# shellcheck source=tests/system/load-lib.sh
. "$(dirname "$0")/load-lib.sh"
# shellcheck source=tests/system/service-lib.sh
. "$(dirname "$0")/service-lib.sh"

refused 'needs a service' --service-dataset set
refused 'service-dataset' --service "$board"
refused 'echo factor' --service "$board" --service-dataset set --echo auto
refused 'several fields' --service "$board" --service-dataset set \
	--fields 'image; class'
refused 'not a host' --service 'a b' --service-dataset set
refused "letters, digits" --service "$board" --service-dataset s/t
refused 'chmod 600' --service "$board" --service-dataset set \
	--service-secret /etc/passwd

# There is no board, then no worker.
load
lone=$(hashes)
with_service
expect 'without a board' "$(hashes)" "$lone"
expect 'live without a board' "$(value service_live)" 0
start_board
start_store
with_service
expect 'without workers' "$(hashes)" "$lone"
expect 'remote without workers' "$(value service_remote)" 0

# Some files are damaged; the workers leave them to the loader.
i=0
find "$data" -name '*.jpg' | sort | while read -r f; do
	i=$((i + 1))
	[ $((i % 20)) -ne 0 ] || : >"$f"
done
start_worker
start_worker
same
same --type f32 --layout nchw --jitter 0.2,0.2,0.2 --cutout 8
same --echo 2
same --echo 2.5 --type f16
same --echo 2 --echo-point after
for rank in 0 1; do
	same --rank $rank --world 2 --echo 2
done

# A run is stopped and goes on with another number of ranks.
load --steps 20 --state "$work/state" --echo 2
cp "$work/state" "$work/lone"
load --state "$work/lone" --echo 2
lone=$(hashes)
with_service --state "$work/state" --echo 2 --step-ms 30
expect 'after a restart' "$(hashes)" "$lone"

# Workers that have another dataset, or other checksums, are of no use.
head -c 32 /dev/urandom | base64 >"$work/secret"
chmod 600 "$work/secret"
load
lone=$(hashes)
with_service --step-ms 20 --service-secret "$work/secret"
expect 'another secret' "$(hashes)" "$lone"
expect 'remote with another secret' "$(value service_remote)" 0
kill "$worker"
wait "$worker" || fail 'a worker does not end'

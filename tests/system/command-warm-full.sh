#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain warm` with a cache that is too small: what fits is cached, the rest
# is counted and read from the source.
set -eu
name=command-warm-full
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse mount python3 sha256sum
# shellcheck source=tests/system/command-lib.sh
. "$(dirname "$0")/command-lib.sh"

half=$((all / 2))
mounted "$work/small:$half"
warm 0
cached=$(warmed cached_items)
rest=$(warmed not_fitting_items)
expect 'all items' $((cached + rest)) "$all_items"
[ "$rest" -gt 0 ] || fail 'all of it fits'
expect 'all bytes' \
	$(($(warmed cached_bytes) + $(warmed not_fitting_bytes))) "$all"
expect 'resident bytes' "$(status_field resident_bytes)" \
	"$(warmed cached_bytes)"
used=$(status_field cache_used_bytes)
[ "$used" -le $half ] || fail "$used used of $half"
[ "$used" -gt $((half - 140000)) ] || fail "only $used used of $half"
expect 'bytes fetched' "$(status_field origin_bytes)" "$(warmed cached_bytes)"
note "$(warmed cached_bytes) bytes charged $used fit $half"
warm 0
expect 'items cached' "$(warmed cached_items)" "$cached"
expect 'bytes fetched' "$(status_field origin_bytes)" "$(warmed cached_bytes)"
drop_caches
sums_right "$sums" "$mnt"
expect 'bytes of the rest' \
	$(($(status_field origin_bytes) - $(warmed cached_bytes))) \
	"$(warmed not_fitting_bytes)"
stop_mount

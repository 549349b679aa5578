#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A mount of http:// on nginx, and on Caddy if there is one: names from JSON and
# HTML indexes, ranges, a file that changes, and links of an index that is
# elsewhere.
set -u
name=http-listings
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse curl nginx openssl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-lib.sh
. "$(dirname "$0")/http-lib.sh"

other=$(free_port)
if command -v caddy >/dev/null; then
	cat >"$work/Caddyfile" <<END
{
	admin off
	auto_https off
}
:$other {
	bind 127.0.0.1
	handle_path /caddy/* {
		root * $src
		file_server browse
	}
}
END
	HOME=$work XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work \
		caddy run --config "$work/Caddyfile" --adapter caddyfile \
		2>"$work/caddy.err" &
	ends_with_test $!
	wait_for 20 curl -sf -o /dev/null "http://127.0.0.1:$other/caddy/" ||
		fail "caddy: $(cat "$work/caddy.err")"
	caddy=http://127.0.0.1:$other/caddy/
else
	note 'no caddy'
	caddy=
fi

for url in http://127.0.0.1:"$plain"/json/ http://127.0.0.1:"$plain"/html/ \
	$caddy; do
	kind=$(basename "$url")
	start_mount "$url" "$work/mnt" \
		--cache "$work/tier:100M" --limit 64K --chunk 64K
	scan_through
	diff -r "$src" "$mnt" || fail "$kind: the mount differs"
	expect "$kind: errors" "$(status_field origin_errors)" 0
	stop_mount
	start_mount "$url" "$work/mnt" \
		--cache "$work/tier:100M" --limit 64K --chunk 64K
	scan_through
	diff -r "$src" "$mnt" || fail "$kind: a remount differs"
	expect "$kind: requests of a remount" \
		"$(status_field origin_requests)" 0
	stop_mount
	rm -rf "$work/tier"
done

# A file that changed is never a mixture, and refresh finds it.
start_mount "http://127.0.0.1:$plain/json/" "$work/mnt" \
	--cache "$work/tier:100M"
scan_through
printf 'another length' >"$src/d1/changed"
"$refrain" refresh "$mnt" >/dev/null
expect 'a new file' "$(cat "$mnt/d1/changed")" 'another length'
stop_mount
rm -rf "$work/tier"

# Absolute links, in an index that is elsewhere.
mkdir "$work/absolute"
echo '<a href="/absolute/a+b%28">a</a>' >"$work/absolute/index.html"
printf inside >"$work/absolute/a+b("
for where in absolute led; do
	start_mount "http://127.0.0.1:$plain/$where" "$work/mnt" \
		--cache "$work/tier:1M"
	scan_through
	expect "a file of $where" "$(cat "$mnt/a+b(")" inside
	stop_mount
	rm -rf "$work/tier"
done

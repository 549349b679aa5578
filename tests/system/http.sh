#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount of http:// and https:// on nginx: names from JSON and HTML indexes,
# ranges, redirects, a certificate that is not valid.
set -u
name=http
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse curl nginx openssl python3
[ -x tests/system/far ] || skip 'built without http and s3'
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY

free_port() {
	python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
plain=$(free_port)
tls=$(free_port)
over=$(free_port)
make_tree "$src" 5 60 200000
printf odd >"$src/d1/a b%25&#+ä"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" \
	-out "$work/cert" -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost \
	2>/dev/null || skip 'cannot make a certificate'
# The same, of yesterday.
openssl req -new -key "$work/key" -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost -out "$work/request" ||
	skip 'cannot ask for a certificate'
openssl x509 -req -in "$work/request" -signkey "$work/key" -days -1 \
	-copy_extensions copy -out "$work/expired" 2>/dev/null ||
	skip 'cannot make a certificate that has expired'
cat >"$work/nginx.conf" <<END
daemon off;
user root;
error_log $work/nginx.err;
pid $work/nginx.pid;
events {}
http {
	access_log $work/access;
	server {
		listen 127.0.0.1:$plain;
		listen 127.0.0.1:$tls ssl http2;
		ssl_certificate $work/cert;
		ssl_certificate_key $work/key;
		location /json/ {
			alias $src/;
			autoindex on;
			autoindex_format json;
		}
		location /html/ { alias $src/; autoindex on; }
		location /loop/ { return 302 /loop/; }
		location /moved/ { return 302 /json/; }
	}
	server {
		listen 127.0.0.1:$over ssl;
		ssl_certificate $work/expired;
		ssl_certificate_key $work/key;
	}
}
END
nginx -c "$work/nginx.conf" -e "$work/nginx.err" -p "$work" &
nginx_pid=$!
ends_with_test $nginx_pid
wait_for 10 curl -sf -o /dev/null "http://127.0.0.1:$plain/json/" ||
	fail "nginx: $(cat "$work/nginx.err")"

for kind in json html; do
	start_mount "http://127.0.0.1:$plain/$kind/" "$work/mnt" \
		--cache "$work/tier:100M" --limit 64K --chunk 64K
	scan_through
	diff -r "$src" "$mnt" || fail "$kind: the mount differs"
	expect "$kind: errors" "$(status_field origin_errors)" 0
	stop_mount
	start_mount "http://127.0.0.1:$plain/$kind/" "$work/mnt" \
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

refused() {
	want=$1
	shift
	"$refrain" mount "$@" "$work/mnt" --cache "$work/tier:10M" \
		>"$work/said" 2>&1 && fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
}
refused 'in a loop' "http://127.0.0.1:$plain/loop"
refused 'HTTP status 404' "http://127.0.0.1:$plain/none"
refused 'self.signed.*AWS_CA_BUNDLE' "https://localhost:$tls/json"
AWS_CA_BUNDLE=$work/cert refused 'is for another host' \
	"https://127.0.0.1:$tls/json"
AWS_CA_BUNDLE=$work/none refused 'the file of AWS_CA_BUNDLE' \
	"https://localhost:$tls/json"
AWS_CA_BUNDLE=$work/expired refused 'has expired.*clock' \
	"https://localhost:$over/json"
start_mount "https://localhost:$tls/json" "$work/mnt" \
	--cache "$work/tier:100M" --insecure-tls
expect 'limits that name the option' \
	"$("$refrain" status "$mnt" --json | grep -c insecure-tls)" 1
stop_mount
AWS_CA_BUNDLE=$work/cert
export AWS_CA_BUNDLE
start_mount "https://localhost:$tls/json" "$work/mnt" --cache "$work/tier:100M"
scan_through
diff -r "$src" "$mnt" || fail 'https: the mount differs'
stop_mount
rm -rf "$work/tier"
! grep -q 'HTTP/2' "$work/access" || fail 'HTTP/2 without being asked for'
start_mount "https://localhost:$tls/json" "$work/mnt" \
	--cache "$work/tier:100M" --http2
scan_through
diff -r "$src" "$mnt" || fail 'HTTP/2: the mount differs'
stop_mount
grep -q 'HTTP/2' "$work/access" || fail 'no HTTP/2'

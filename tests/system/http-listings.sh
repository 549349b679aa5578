#!/bin/sh
# SPDX-License-Identifier: MIT
# A mount of http:// and https:// on nginx, and on Caddy if there is one: names
# from JSON and HTML indexes, ranges, redirects, a certificate that is not
# valid.
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

plain=$(free_port)
tls=$(free_port)
over=$(free_port)
old=$(free_port)
strict=$(free_port)
other=$(free_port)
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
	log_format suite '\$server_port \$ssl_protocol \$ssl_cipher';
	access_log $work/access;
	access_log $work/suites suite;
	ssl_protocols TLSv1.2 TLSv1.3;
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
		location /absolute/ { root $work; }
		location /led/ { rewrite ^/led/(.*) /absolute/\$1 redirect; }
	}
	server {
		listen 127.0.0.1:$over ssl;
		ssl_certificate $work/expired;
		ssl_certificate_key $work/key;
	}
	server {
		listen 127.0.0.1:$old ssl;
		ssl_protocols TLSv1.2;
		ssl_certificate $work/cert;
		ssl_certificate_key $work/key;
		location /json/ {
			alias $src/;
			autoindex on;
			autoindex_format json;
		}
	}
	server {
		listen 127.0.0.1:$strict ssl;
		ssl_protocols TLSv1.2;
		ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;
		ssl_certificate $work/cert;
		ssl_certificate_key $work/key;
		location /json/ {
			alias $src/;
			autoindex on;
			autoindex_format json;
		}
	}
}
END
nginx -c "$work/nginx.conf" -e "$work/nginx.err" -p "$work" &
nginx_pid=$!
ends_with_test $nginx_pid
wait_for 10 curl -sf -o /dev/null "http://127.0.0.1:$plain/json/" ||
	fail "nginx: $(cat "$work/nginx.err")"

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

refused() {
	want=$1
	shift
	"$refrain" mount "$@" "$work/mnt" --cache "$work/tier:10M" \
		>"$work/said" 2>&1 && fail "mounted: $*"
	grep -q "$want" "$work/said" ||
		fail "says $(cat "$work/said"), not $want"
}
refused 'redirect loop at' "http://127.0.0.1:$plain/loop"
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

# suite_of PORT: the cipher suite of a mount from there.
suite_of() {
	rm -rf "$work/tier"
	before=$(wc -l <"$work/suites")
	start_mount "https://localhost:$1/json" "$work/mnt" \
		--cache "$work/tier:100M"
	scan_through
	cmp "$src/d1/changed" "$mnt/d1/changed" || fail "port $1: it differs"
	stop_mount
	suite=$(tail -n +$((before + 1)) "$work/suites" |
		sed -n "s/^$1 //p" | sort -u)
}

# AES-128 is asked for first, and a server that has none is served all the same.
# An order that the system's configuration gives is not changed otherwise.
suite_of "$strict"
expect 'AES-256 alone' "$suite" 'TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384'
case $(ldd "$refrain") in
*libcurl-*) exit 0 ;; # not over OpenSSL
esac
suite_of "$old"
expect 'TLS 1.2' "$suite" 'TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256'
suite_of "$tls"
expect 'TLS 1.3' "$suite" 'TLSv1.3 TLS_AES_128_GCM_SHA256'
cat >"$work/openssl.cnf" <<'END'
openssl_conf = one
[one]
ssl_conf = two
[two]
system_default = three
[three]
CipherString = ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305
Ciphersuites = TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256
END
OPENSSL_CONF=$work/openssl.cnf
export OPENSSL_CONF
suite_of "$old"
expect 'TLS 1.2 without AES-128' "$suite" 'TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384'
suite_of "$tls"
expect 'TLS 1.3 without AES-128' "$suite" 'TLSv1.3 TLS_AES_256_GCM_SHA384'

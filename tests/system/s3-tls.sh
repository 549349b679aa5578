#!/bin/sh
# SPDX-License-Identifier: MIT
#
# s3:// without an endpoint, as with AWS. A proxy connects every CONNECT to
# nginx, which terminates TLS for the stand-in. A bucket with dots is addressed
# by path, because no certificate is valid for its host; other buckets are
# addressed by host. The proxy's password is sent only to the proxy.
set -u
name=s3-tls
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse curl nginx openssl python3
[ -x tests/system/far ] || skip 'built without http and s3'
here=$(dirname "$0")

far_start files=10 size=1000
far_put my.dotted.bucket/a/b inside
aws=s3.eu-west-1.amazonaws.com
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" \
	-out "$work/cert" -days 2 -subj /CN=s3 \
	-addext "subjectAltName=DNS:$aws,DNS:*.$aws" \
	2>/dev/null || skip 'cannot make a certificate'
tls=$(free_port)
cat >"$work/nginx.conf" <<END
daemon off;
user root;
error_log $work/nginx.err;
pid $work/nginx.pid;
events {}
http {
	log_format suite '\$ssl_cipher';
	access_log $work/access;
	access_log $work/suites suite;
	server {
		listen 127.0.0.1:$tls ssl;
		ssl_certificate $work/cert;
		ssl_certificate_key $work/key;
		location / {
			proxy_pass $far;
			proxy_set_header Host \$http_host;
		}
	}
}
END
nginx -c "$work/nginx.conf" -e "$work/nginx.err" -p "$work" &
ends_with_test $!
mkfifo "$work/proxy.in"
python3 "$here/connect_proxy.py" "$tls" "$work/proxy.log" <"$work/proxy.in" \
	>"$work/proxy.out" &
ends_with_test $!
exec 8>"$work/proxy.in"
wait_for 10 test -s "$work/proxy.out" || fail 'no proxy'
wait_for 10 curl -sk -o /dev/null "https://127.0.0.1:$tls/" || fail nginx
unset AWS_ENDPOINT_URL
https_proxy="http://joe:hunter2@127.0.0.1:$(cat "$work/proxy.out")"
AWS_CA_BUNDLE=$work/cert
export https_proxy AWS_CA_BUNDLE

start_mount s3://my.dotted.bucket/a "$work/mnt" --cache "$work/tier:10M" \
	--region eu-west-1 --log-level info
scan_through
expect 'a bucket with dots' "$(cat "$mnt/b")" inside
expect 'errors' "$(status_field origin_errors)" 0
"$refrain" status --json >"$work/status" "$mnt"
tr '\0' ' ' <"/proc/$daemon/cmdline" >"$work/cmdline"
stop_mount
case $(ldd "$refrain") in
*libcurl-*) ;; # libcurl does not use OpenSSL
*) grep -Eq 'AES_?128.GCM' "$work/suites" || fail 'not AES-128' ;;
esac
login="Proxy-Authorization: Basic $(printf joe:hunter2 | base64)"
sort -u "$work/proxy.log" >"$work/asked"
expect 'asked of the proxy' "$(cat "$work/asked")" \
	"CONNECT $aws:443 $login"
! grep -rEaq 'hunter2|Secret/|Basic' "$work/tier" "$work/status" \
	"$work/cmdline" "$daemon_err" "$work/access" ||
	fail 'a secret is told'

# A bucket without dots is addressed by host. The stand-in has no such buckets.
"$refrain" mount s3://many "$work/mnt" --cache "$work/other:10M" \
	--region eu-west-1 >"$work/said" 2>&1 && fail 'no such host is served'
grep -q "^CONNECT many.$aws:443 " "$work/proxy.log" ||
	fail "asked: $(cat "$work/proxy.log")"
# The certificate is verified through the proxy, too.
AWS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt "$refrain" mount \
	s3://my.dotted.bucket/a "$work/mnt" --cache "$work/other:10M" \
	--region eu-west-1 >"$work/said" 2>&1 && fail 'a wrong authority mounts'
grep -q 'certificate' "$work/said" || fail "says: $(cat "$work/said")"
! grep -q 'hunter2' "$work/said" || fail 'a message tells the password'

# The services of China have hosts of their own.
printf token >"$work/token"
env -u AWS_ACCESS_KEY_ID -u AWS_ENDPOINT_URL_STS AWS_ROLE_ARN=arn:x \
	AWS_WEB_IDENTITY_TOKEN_FILE="$work/token" "$refrain" mount s3://many \
	"$work/mnt" --cache "$work/other:10M" --region cn-north-1 \
	>"$work/said" 2>&1 && fail 'STS of another name answers'
grep -q '^CONNECT sts.cn-north-1.amazonaws.com.cn:443 ' "$work/proxy.log" ||
	fail "asked: $(cat "$work/proxy.log")"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Cipher suites of https://: AES-128 is offered first, and a server without it
# still works. Otherwise the order that the system gives is not changed.
set -u
name=http-suites
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/far-lib.sh
. "$(dirname "$0")/far-lib.sh"
PATH=$PATH:/usr/sbin
requires fuse curl nginx openssl python3
[ -x tests/system/far ] || skip 'built without http and s3'
# shellcheck source=tests/system/http-lib.sh
. "$(dirname "$0")/http-lib.sh"

AWS_CA_BUNDLE=$work/cert
export AWS_CA_BUNDLE
printf 'another length' >"$src/d1/changed"

# suite_of PORT: print the cipher suite of a mount of that port.
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

suite_of "$strict"
expect 'AES-256 alone' "$suite" 'TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384'
case $(ldd "$refrain") in
*libcurl-*) exit 0 ;; # libcurl does not use OpenSSL
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

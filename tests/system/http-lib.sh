# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of http:// and https:// on nginx; sourced after far-lib.sh. nginx
# shows $src at http://127.0.0.1:$plain and, by TLS of several kinds, at
# https://localhost:$tls, $over, $old and $strict.
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
plain=$(free_port)
tls=$(free_port)
over=$(free_port)
old=$(free_port)
strict=$(free_port)
make_tree "$src" 5 60 200000
printf odd >"$src/d1/a b%25&#+ä"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" \
	-out "$work/cert" -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost \
	2>/dev/null || skip 'cannot make a certificate'
# Make a certificate that has expired yesterday.
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

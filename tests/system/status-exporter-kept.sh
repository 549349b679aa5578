#!/bin/sh
# SPDX-License-Identifier: MIT
#
# No client can block an exporter: connections with half a request are closed in
# time, or to make room for a new one. Names that look alike have different
# labels. A mount whose socket may not be used does not count as down. The
# exporter of a mount keeps no directory busy, ends if the mount is refused, and
# frees its address for the exporter of the next mount.
set -eu
name='status-exporter-kept'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/several-lib.sh
. "$(dirname "$0")/several-lib.sh"
requires root fuse python3 curl
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
[ -x "$PWD/refrain-exporter" ] || skip 'built without libmicrohttpd'

head -c 1000 /dev/urandom >"$src/a"

mount_named() {
	mkdir -p "$work/m/$1"
	"$refrain" mount --foreground --no-hold "$src" "$work/m/$1" \
		--cache "$work/cache.$2:1M" 2>>"$work/daemon.$2.err" &
	wait_for 20 has_status_at "$work/m/$1" || fail "no mount at $1"
}

scraped() {
	curl -s -f -o "$work/out" "$metrics"
}

port=$(free_port)
metrics=http://127.0.0.1:$port/metrics
"$refrain" exporter --listen "127.0.0.1:$port" 2>"$work/exporter.err" &
exporter=$!
wait_for 20 scraped || fail "no exporter: $(cat "$work/exporter.err")"

note 'half requests'
python3 - "$port" "$patience" <<'END' || fail 'half requests block scrapes'
import socket, sys, time
port, patience = int(sys.argv[1]), int(sys.argv[2])
half = b'GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: '


def scrape():
    """Return the seconds until the answer has come."""
    begun = time.monotonic()
    with socket.create_connection(('127.0.0.1', port), 8 * patience) as s:
        s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        answer = b''
        while got := s.recv(1 << 20):
            answer += got
    assert answer.startswith(b'HTTP/1.1 200'), answer[:100]
    return time.monotonic() - begun


def open_half(source='127.0.0.1'):
    s = socket.create_connection(('127.0.0.1', port), 5, (source, 0))
    try:
        s.sendall(half)
    except OSError:
        pass  # other connections have taken its place
    return s


# Open connections from the address of the scraper, and then from other
# addresses.
held = [open_half() for _ in range(80)]
took = scrape()
assert took < 5 * patience, took
held += [open_half('127.0.0.%d' % (2 + i % 8)) for i in range(80)]
took = scrape()
assert took < 5 * patience, took
for s in held:
    s.close()

# A connection that sends a byte now and then is closed, too.
s = open_half()
s.settimeout(0.2)
begun = time.monotonic()
ended = False
while not ended:
    assert time.monotonic() < begun + 60 * patience, 'still open'
    try:
        s.sendall(b'b')
        ended = s.recv(1) == b''
    except socket.timeout:
        pass
    except OSError:
        ended = True
END

note 'a client that scrapes on one connection'
python3 - "$port" <<'END' || fail 'a connection in use is closed'
import http.client, sys
c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), 20)
c.connect()
at = c.sock.getsockname()
for _ in range(20):
    c.request('GET', '/metrics')
    r = c.getresponse()
    assert r.status == 200 and r.read()
assert c.sock.getsockname() == at
END

note 'names that look alike'
newline='x
y'
before_cleanup() {
	umount -l "$work/m/$newline" "$work/m/x\\ny" 2>/dev/null || :
}
mount_named "$newline" 1
mount_named 'x\ny' 2
scraped || fail 'no metrics'
n=$(grep '^refrain_up{.*/m/x' "$work/out" | sort -u | wc -l)
expect 'the labels' "$n" 2
if command -v promtool >/dev/null; then
	promtool check metrics <"$work/out" >"$work/said" 2>&1 ||
		fail "promtool: $(cat "$work/said")"
fi
"$refrain" umount "$work/m/$newline"
"$refrain" umount "$work/m/x\\ny"

note 'a mount that may not be asked'
if command -v setpriv >/dev/null; then
	chmod 711 "$work" "$work/m" "$short"
	mount_named private 3
	other="setpriv --reuid nobody --regid $(id -g nobody) --clear-groups"
	if $other test -x "$PWD/refrain-exporter"; then
		second=$(free_port)
		# shellcheck disable=SC2086 # a list of words
		$other "$refrain" exporter --listen "127.0.0.1:$second" &
		theirs=$!
		metrics=http://127.0.0.1:$second/metrics
		wait_for 20 scraped || fail 'no exporter of another user'
		! grep -q '^refrain_up' "$work/out" || fail 'it is down'
		grep -q "^refrain_refused{mountpoint=\"$work/m/private\"} 1\$" \
			"$work/out" || fail "not refused: $(cat "$work/out")"
		kill $theirs
		wait $theirs || fail 'the exporter of another user fails'
		metrics=http://127.0.0.1:$port/metrics
	fi
	scraped || fail 'no metrics'
	grep -q "^refrain_up{mountpoint=\"$work/m/private\"} 1\$" "$work/out" ||
		fail 'it is down'
	grep -q "^refrain_refused{mountpoint=\"$work/m/private\"} 0\$" \
		"$work/out" || fail 'it is refused'
	"$refrain" umount "$work/m/private"
fi
kill $exporter
wait $exporter || fail 'the exporter fails'

# exporters: print the processes of the exporters of this test's mounts.
exporters() {
	grep -lsxz "REFRAIN_TEST_WORK=$work" /proc/[0-9]*/environ |
		while IFS=/ read -r _ _ p _; do
			[ "$(cat "/proc/$p/comm" 2>/dev/null)" != \
				refrain-exporte ] || echo "$p"
		done
}

no_exporter() {
	[ -z "$(exporters)" ]
}

note 'the exporter of a mount that is refused'
mkdir "$work/m/own"
begun=$(date +%s)
! "$refrain" mount "$work/nothing" "$work/m/own" --cache "$work/c:1M" \
	--metrics "127.0.0.1:$port" >"$work/said" 2>&1 ||
	fail 'a mount of nothing'
wait_for 20 no_exporter || fail 'its exporter lives on'
[ $(($(date +%s) - begun)) -lt $((30 * patience)) ] || fail 'it lives for long'

note 'a working directory that is free'
mkdir "$work/here"
(cd "$work/here" && "$refrain" mount "$src" "$work/m/own" \
	--cache "$work/c:1M" --metrics "unix:socket") ||
	fail 'no mount'
has_socket() {
	curl -s -f -o "$work/out" --unix-socket "$work/here/socket" \
		http://localhost/metrics
}
wait_for 20 has_socket || fail 'no exporter'
for p in $(exporters); do
	expect 'the directory' "$(readlink "/proc/$p/cwd")" /
done
"$refrain" umount "$work/m/own"
wait_for 20 no_exporter || fail 'its exporter outlives it'
[ ! -e "$work/here/socket" ] || fail 'the socket is left'

note 'mounts one after the other'
for i in 1 2 3 4; do
	"$refrain" mount "$src" "$work/m/own" --cache "$work/c:1M" \
		--metrics "127.0.0.1:$port" >>"$work/said" 2>&1 ||
		fail "no mount: $(cat "$work/said")"
	wait_for 20 scraped ||
		fail "no exporter in round $i: $(cat "$work/said")"
	[ $i -eq 4 ] || "$refrain" umount "$work/m/own"
done
! grep 'in use' "$work/said" || fail 'the port is in use'
is_up() {
	scraped && grep -q "^refrain_up{mountpoint=\"$work/m/own\"} 1\$" \
		"$work/out"
}
wait_for 20 is_up || fail 'the last mount has no exporter'
"$refrain" umount "$work/m/own"
wait_for 20 no_exporter || fail 'its exporter outlives it'
echo PASS

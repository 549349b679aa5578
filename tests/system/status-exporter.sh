#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `refrain exporter`: all mounts in both text formats, with the values of their
# statuses and without a complaint of promtool. Dead and hung mounts are down,
# and hung mounts delay only the first scrape.
set -eu
name='status-exporter'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/several-lib.sh
. "$(dirname "$0")/several-lib.sh"
requires root fuse python3 curl
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
[ -x "$PWD/refrain-exporter" ] || skip 'built without libmicrohttpd'

head -c 100000 /dev/urandom >"$src/a"

# mount_one NAME OPTION ...: mount the source with a cache of 10 MiB.
mount_one() {
	called=$1
	shift
	mount_at "$called" "$src" --cache "$work/cache.$called:10M" "$@"
}

# get URL OPTION ...: send a request. $work/out has the answer, and $code its
# status.
get() {
	url=$1
	shift
	code=$(curl -s -o "$work/out" -D "$work/head" -w '%{http_code}' "$@" \
		"$url")
}

scraped() {
	get "$metrics" && [ "$code" = 200 ]
}

no_complaint() {
	command -v promtool >/dev/null || return 0
	promtool check metrics <"$1" >"$work/said" 2>&1 ||
		fail "promtool: $(cat "$work/said")"
}

port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
metrics=http://127.0.0.1:$port/metrics
"$refrain" exporter --listen "127.0.0.1:$port" 2>"$work/exporter.err" &
exporter=$!
wait_for 20 scraped || fail "no exporter: $(cat "$work/exporter.err")"
no_complaint "$work/out"
! grep -q '^refrain_up' "$work/out" || fail 'a mount where none is'

note 'names of the host'
for host in "127.0.0.1:$port" '[::1]:1' "localhost:$port" LOCALHOST \
	"$(hostname)" "$(hostname):$port" 192.0.2.1; do
	get "$metrics" -H "Host: $host"
	expect "the status for '$host'" "$code" 200
done
for host in "evil.example:$port" 127.0.0.1.evil.example localhost.example \
	"$(hostname).evil.example" '[evil.example]'; do
	get "$metrics" -H "Host: $host"
	expect "the status for '$host' of a scrape" "$code" 200
	for path in / /data.json; do
		get "http://127.0.0.1:$port$path" -H "Host: $host"
		expect "the status for '$host' of $path" "$code" 403
		expect 'lines' "$(wc -l <"$work/out")" 1
	done
done

note 'mounts that are up'
mount_one one
mount_one '"two"'
cat "$work/m/one/a" "$work/m/one/a" >/dev/null
scraped || fail "status $code"
no_complaint "$work/out"
grep -qi '^content-type: text/plain; version=0.0.4' "$work/head" ||
	fail "the type: $(cat "$work/head")"
"$refrain" status "$work/m/one" --json >"$work/one.json"
"$refrain" status "$work/m/one" --prometheus >"$work/one.prom"
no_complaint "$work/one.prom"
cp "$work/out" "$work/text"
get "$metrics" -H 'Accept: application/openmetrics-text; version=1.0.0'
grep -qi '^content-type: application/openmetrics-text; version=1.0.0' \
	"$work/head" || fail "the type: $(cat "$work/head")"
python3 - "$work" <<'END' || fail 'the metrics are not as they should be'
import json, re, sys
work = sys.argv[1]
status = json.load(open(work + '/one.json'))
units = {'us': ('seconds', 1e-6), 'ms': ('seconds', 1e-3), 's': ('seconds', 1),
         'pct': ('ratio', 1e-2), 'kib': ('bytes', 1024)}
label = r'\w+="(?:[^"\\\n]|\\["\\n])*"'
changing = {'uptime_seconds', 'open_fds', 'memory_rss_bytes'}


def read(file, openmetrics):
    """Return {(name, labels): value}, and check that the samples of a family
    are together."""
    samples, types, family = {}, {}, None
    lines = open(file).read().splitlines()
    if openmetrics:
        assert lines.pop() == '# EOF'
    for line in lines:
        if m := re.fullmatch(r'# HELP (\w+) (\S.*)', line):
            assert m[1] not in types, line
            family = m[1]
        elif m := re.fullmatch(r'# TYPE (\w+) (counter|gauge|histogram)',
                               line):
            assert m[1] == family, line
            types[family] = m[2]
        else:
            m = re.fullmatch(
                r'(\w+)\{((?:%s)(?:,%s)*)\} ([0-9.e+-]+)' % (label, label),
                line)
            assert m, line
            counter = types[family] == 'counter'
            ends = {'histogram': '(_bucket|_sum|_count)',
                    'counter': '_total' if openmetrics else ''}
            assert re.fullmatch(family + ends.get(types[family], ''), m[1]), \
                (family, line)
            assert counter == m[1].endswith('_total'), line
            assert (m[1], m[2]) not in samples, line
            # Metrics of the epoch appear and disappear with time.
            if not re.match('refrain_(epoch|larger_|whole_)', m[1]):
                samples[m[1], m[2]] = float(m[3])
    return samples, types


text, types = read(work + '/text', False)
openmetrics, _ = read(work + '/out', True)
alone, _ = read(work + '/one.prom', False)
assert {k for k, v in text.items()} == set(openmetrics)
one = 'mountpoint="%s/m/one"' % work
two = 'mountpoint="%s/m/\\"two\\""' % work
assert text['refrain_up', one] == text['refrain_up', two] == 1
assert any(n == 'refrain_build_info' and 'version="' in w for n, w in text)
assert set(alone) <= set(text), set(alone) - set(text)
seen = 0
for key, value in status.items():
    if isinstance(value, (int, float)):
        base, factor = key, 1
        for unit, (into, by) in units.items():
            if key.endswith('_' + unit):
                base, factor = key[:-len(unit)] + into, by
        for name in 'refrain_' + base, 'refrain_' + base + '_total':
            if (name, one) in text:
                seen += 1
                for where in text, openmetrics, alone:
                    got = where[name, one]
                    assert base in changing or \
                        abs(got - value * factor) < 1e-9 + 1e-12 * got, \
                        (name, got, value)
assert seen > 60, seen
h = status['latency']['read_origin']
name = 'refrain_read_duration_seconds'
of = one + ',source="origin"'
assert text[name + '_count', of] == h['count'] > 0
assert abs(text[name + '_sum', of] - h['sum_us'] / 1e6) < 1e-9
below = [text[name + '_bucket', '%s,le="%.6g"' % (of, b / 1e6)]
         for b in status['latency']['bounds_us']]
assert below == sorted(below) and below[-1] == h['count'], below
assert not any(re.search(r'_(us|ms|s|pct|kib)(_total)?$', n) for n, _ in text)
END

note 'a dead mount and hung ones'
mount_one dead
mount_one still1
mount_one still2
scraped
kill -9 "$(pid_of dead)"
wait_for 20 has_ended "$(pid_of dead)" || fail 'the daemon does not die'
stop_process "$(pid_of still1)"
stop_process "$(pid_of still2)"
took_ms() {
	begun=$(date +%s%N)
	scraped || fail "status $code"
	took=$((($(date +%s%N) - begun) / 1000000))
}
took_ms
[ $took -lt $((2000 * patience)) ] || fail "the first scrape took $took ms"
no_complaint "$work/out"
for m in dead still1 still2; do
	grep -q "^refrain_up{mountpoint=\"$work/m/$m\"} 0\$" "$work/out" ||
		fail "$m is not down"
	expect "metrics of $m" "$(grep -c "m/$m\"" "$work/out")" 2
done
grep -q "^refrain_up{mountpoint=\"$work/m/one\"} 1\$" "$work/out" ||
	fail 'the healthy one is down'
# quick: does a scrape take less than the 900 ms for which the exporter waits
# for an answer?
quick() {
	took_ms
	[ $took -lt 600 ]
}
wait_for 20 quick || fail "hung mounts hold up scrapes for $took ms"
kill -CONT "$(pid_of still1)"
is_up() {
	scraped && grep -q "^refrain_up{mountpoint=\"$work/m/$1\"} 1\$" \
		"$work/out"
}
wait_for 20 is_up still1 || fail 'it stays down'

# stands_in: start a program that answers in place of the daemon.
stands_in() {
	control=$(python3 -c 'import os, sys
print(os.getxattr(sys.argv[1], "user.refrain.control").decode())' \
		"$work/m/chatty")
	mv "$control" "$control.real"
	python3 - "$control" <<'END' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + '.new')
s.listen()
os.rename(sys.argv[1] + '.new', sys.argv[1])
while True:
    c, _ = s.accept()
    try:
        while True:
            c.sendall(b'{}\n' * 100000)
    except OSError:
        c.close()
END
	chatty=$!
	wait_for 20 test -S "$control" || fail 'nobody stands in'
}

note 'a daemon that sends lines without end'
mount_one chatty
stands_in
"$refrain" status --all --json >"$work/all.json" 2>"$work/err" || :
python3 - "$work/all.json" <<'END' || fail 'its lines are accepted'
import json, sys
m = [m for m in json.load(open(sys.argv[1]))['mounts']
     if m['mountpoint'].endswith('/chatty')]
assert 'more than its answer' in m[0]['why'], m
END
kill $chatty
wait $chatty || :
mv "$control.real" "$control"

note 'another user mounts at the same place'
# The kernel gives the new mount the number of the old one.
mount_one place
wait_for 20 is_up place || fail 'it is not up'
other="setpriv --reuid nobody --regid $(id -g nobody) --clear-groups"
other="$other env XDG_RUNTIME_DIR=$short/nobody"
chmod 711 "$work" "$work/m" "$short"
chmod -R a+rX "$src"
mkdir -m 700 "$work/nobody" "$short/nobody"
if command -v setpriv >/dev/null && command -v fusermount3 >/dev/null &&
	chown nobody "$work/nobody" "$short/nobody" &&
	$other test -x "$refrain" && $other test -w /dev/fuse; then
	"$refrain" umount "$work/m/place"
	chown nobody "$work/m/place"
	$other "$refrain" mount --no-hold "$src" "$work/m/place" \
		--cache "$work/nobody/c:10M"
	wait_for 20 is_up place || fail 'the mount of another user is down'
	$other "$refrain" umount "$work/m/place"
fi

note 'what it refuses'
get "$metrics" -X POST -d x=1
expect 'the status of POST' "$code" 405
get "http://127.0.0.1:$port/../../etc/passwd" --path-as-is
expect 'the status of another path' "$code" 404
for path in '' data.json; do
	get "http://127.0.0.1:$port/$path"
	expect "the status of /$path" "$code" 200
	get "http://127.0.0.1:$port/$path" -X POST -d x=1
	expect "the status of POST to /$path" "$code" 405
done
for where in nonsense 127.0.0.1 example.org:1 127.0.0.1:http; do
	got=0
	"$refrain" exporter --listen $where 2>"$work/err" || got=$?
	expect "the status for $where" $got 2
done
got=0
"$refrain" exporter --listen "127.0.0.1:$port" 2>"$work/err" || got=$?
expect 'the status for a port in use' $got 1
grep -q 'Address already in use' "$work/err" || fail "$(cat "$work/err")"
kill $exporter
got=0
wait $exporter || got=$?
expect 'the status at its end' $got 0

note 'a Unix socket'
socket=$short/metrics
metrics=http://localhost/metrics
scraped_there() {
	get "$metrics" --unix-socket "$socket" && [ "$code" = 200 ]
}
"$refrain" exporter --listen "unix:$socket" &
exporter=$!
wait_for 20 scraped_there || fail 'no exporter'
expect 'the mode' "$(stat -c %a "$socket")" 660
kill -9 $exporter
wait $exporter 2>/dev/null || :
# The exporter that was killed has left the socket behind.
"$refrain" exporter --listen "unix:$socket" --until-unmounted "$work/m/one" &
exporter=$!
wait_for 20 scraped_there || fail 'no exporter'
no_complaint "$work/out"
# The exporter ends even if another mount is at the same place.
kill -STOP $exporter
kill "$(pid_of one)"
wait_for 20 has_ended "$(pid_of one)" || fail 'the daemon does not end'
mount -t tmpfs none "$work/m/one"
kill -CONT $exporter
wait_for 20 has_ended $exporter || fail 'it outlives the mount'
[ ! -e "$socket" ] || fail 'the socket is left'

note 'the exporter of a mount'
metrics=http://127.0.0.1:$port/metrics
mkdir "$work/m/own"
# The command substitution does not wait for the end of the exporter.
said=$("$refrain" mount "$src" "$work/m/own" --cache "$work/cache.own:10M" \
	--metrics "127.0.0.1:$port" 2>&1) || fail "no mount: $said"
wait_for 20 is_up own || fail 'the mount has no exporter'
"$refrain" umount "$work/m/own"
refused() {
	! scraped
}
wait_for 20 refused || fail 'its exporter outlives it'

note 'the unit'
if command -v systemd-analyze >/dev/null; then
	systemd-analyze security --offline=true --threshold=15 \
		"$PWD/systemd/refrain-exporter.service" >"$work/said" 2>&1 ||
		fail "it is exposed: $(tail -n 1 "$work/said")"
fi
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A Prometheus scrapes the exporter while a mount works: each expression of the
# dashboard and of the alerting rules is valid, and either yields data or
# compares existing metrics.
set -eu
name='status-dashboard'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 prometheus promtool curl
python3 -c 'import yaml' 2>/dev/null || skip 'needs python3-yaml'
[ -x "$PWD/refrain-exporter" ] || skip 'built without libmicrohttpd'
monitoring=$(cd "$(dirname "$0")/../../monitoring" && pwd)

i=0
while [ $i -lt 40 ]; do
	head -c 100000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done
# Half of the files fit; the others come from the origin each time.
start_mount "$src" "$mnt" --cache "$work/cache:2M" --fault delay=2ms
scan_through
port=$(free_port)
"$refrain" exporter --listen "127.0.0.1:$port" &
ends_with_test $!
python3 - "$mnt" 2>/dev/null <<'END' &
import mmap, os, sys
page = mmap.mmap(-1, 102400)
# Read without the kernel's pages.
while True:
    for f in os.listdir(sys.argv[1]):
        fd = os.open(os.path.join(sys.argv[1], f), os.O_RDONLY | os.O_DIRECT)
        os.preadv(fd, [page], 0)
        os.close(fd)
END
ends_with_test $!

cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: ["$monitoring/alerts.yaml"]
scrape_configs:
  - job_name: refrain
    static_configs: [{targets: ["127.0.0.1:$port"]}]
END
promtool check config "$work/prometheus.yml" >"$work/said" 2>&1 ||
	fail "promtool: $(cat "$work/said")"
web=$(free_port)
prometheus --config.file="$work/prometheus.yml" \
	--storage.tsdb.path="$work/tsdb" \
	--web.listen-address="127.0.0.1:$web" >"$work/prometheus.log" 2>&1 &
ends_with_test $!
has_started() {
	curl -s -f -o /dev/null "http://127.0.0.1:$web/-/ready"
}
wait_for 30 has_started || fail "no Prometheus: $(cat "$work/prometheus.log")"

python3 - "$monitoring" "$web" "$patience" "$mnt" <<'END' || fail 'see above'
import json, re, sys, time, urllib.parse, urllib.request, yaml
monitoring, web, patience, mnt = sys.argv[1:]
base = f'http://127.0.0.1:{web}/api/v1/'
# Metrics of parts that this mount does not have.
other = re.compile(r'refrain_(epoch_|peer_up|peer_host_|share_)')


def get(what, **query):
    url = base + what + '?' + urllib.parse.urlencode(query)
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)['data']


def ask(expr):
    """Return the samples. Fail if the expression is not valid."""
    return get('query', query=expr)['result']


def until(what, condition):
    end = time.monotonic() + 60 * int(patience)
    while not (got := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.2)
    return got


board = json.load(open(monitoring + '/grafana.json'))
exprs = [t['expr'] for p in board['panels'] for t in p.get('targets', [])]
assert len(exprs) > 30, exprs
for expr in exprs:
    expr = expr.replace('$__rate_interval', '5s').replace(
        '$instance', '.*').replace('$mountpoint', re.escape(mnt).replace(
            '\\', '\\\\'))
    ask(expr)
    if not other.search(expr):
        until(expr, lambda: [s for s in ask(expr)
                             if s['value'][1] != 'NaN'])

# The exporter must have each metric of the rules.
known = set(get('label/__name__/values'))
rules = [r for g in yaml.safe_load(open(monitoring + '/alerts.yaml'))['groups']
         for r in g['rules']]
for r in rules:
    for metric in re.findall(r'\brefrain_\w+', r['expr']):
        assert metric in known or other.match(metric), (metric, r)
evaluated = until('the rules are evaluated', lambda: [
    r for g in get('rules')['groups'] for r in g['rules']
    if r['health'] != 'unknown'])
assert all(r['health'] == 'ok' for r in evaluated), evaluated
firing = [a for a in get('alerts')['alerts'] if a['state'] == 'firing']
assert not firing, firing
END

note 'a daemon that dies raises the alert'
kill_mount
python3 - "$web" "$patience" "$mnt" <<'END' || fail 'no alert'
import json, sys, time, urllib.request
web, patience, mnt = sys.argv[1:]
end = time.monotonic() + 30 * int(patience)
while True:
    with urllib.request.urlopen(f'http://127.0.0.1:{web}/api/v1/alerts') as a:
        alerts = json.load(a)['data']['alerts']
    if [a for a in alerts if a['labels']['alertname'] == 'RefrainMountDown'
            and a['labels']['mountpoint'] == mnt]:
        break  # "pending" is enough, because the alert fires after a minute
    assert time.monotonic() < end, alerts
    time.sleep(0.2)
END
echo PASS

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The live page of the exporter in a real browser: it shows a source that does
# not answer, a hung and a dead daemon and the end of the exporter, and its
# plots agree with the counters of the same run. It refers to nothing outside,
# fits a phone, and works by keyboard.
set -eu
name='status-page'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires root fuse python3 nginx
[ -n "${REFRAIN_TEST_NAMESPACE:-}" ] || skip 'needs a mount namespace'
[ -x "$PWD/refrain-exporter" ] || skip 'built without libmicrohttpd'
PYTHONDONTWRITEBYTECODE=1
PYTHONPATH=$(dirname "$0")
export PYTHONPATH PYTHONDONTWRITEBYTECODE
python3 -c 'import browser; exit(not browser.program())' ||
	skip 'needs chromium'

i=0
while [ $i -lt 40 ]; do
	head -c 200000 /dev/urandom >"$src/f$i"
	i=$((i + 1))
done
chmod -R a+rX "$src"
web=$(free_port)
cat >"$work/nginx.conf" <<END
daemon off;
master_process off;
error_log $work/nginx.err;
pid $work/nginx.pid;
events {}
http {
	access_log off;
	server {
		listen 127.0.0.1:$web;
		location / { root $src; autoindex on; autoindex_format json; }
	}
}
END
nginx -c "$work/nginx.conf" -e "$work/nginx.err" -p "$work" &
nginx=$!
ends_with_test $nginx
has_origin() {
	python3 -c "import socket; socket.create_connection(
	('127.0.0.1', $web), 1)" 2>/dev/null
}
wait_for 20 has_origin || fail "no nginx: $(cat "$work/nginx.err")"

odd='<img src=x onerror=alert(1)>'
before_cleanup() {
	umount -l "$work/m/$odd" 2>/dev/null || :
}

# mount_at NAME SOURCE N: mount with a cache for half of the data.
mount_at() {
	mkdir -p "$work/m/$1"
	"$refrain" mount --foreground --no-hold "$2" "$work/m/$1" \
		--cache "$work/cache.$3:4M" 2>>"$work/daemon.$3.err" &
	echo $! >"$work/pid.$3"
	wait_for 20 is_ready "$work/m/$1" || fail "no mount at $1"
}
is_ready() {
	[ "$(status_field ready "$1" 2>/dev/null)" = true ] &&
		[ "$(status_field scan "$1" 2>/dev/null)" = complete ]
}
mount_at busy "http://127.0.0.1:$web/" 1
mount_at "$odd" "$src" 2
port=$(free_port)
"$refrain" exporter --listen "127.0.0.1:$port" &
exporter=$!
ends_with_test $exporter

python3 - "$refrain" "$work" "$port" $exporter $nginx "$patience" <<'END' ||
import json, mmap, os, random, re, signal, subprocess, sys, threading, time
import urllib.request

from browser import Browser

refrain, work, port = sys.argv[1:4]
exporter, nginx, patience = (int(x) for x in sys.argv[4:])
busy, odd = work + '/m/busy', work + '/m/<img src=x onerror=alert(1)>'
pids = [int(open(f'{work}/pid.{i}').read()) for i in (1, 2)]
base = f'http://127.0.0.1:{port}/'
with urllib.request.urlopen(base) as answer:
    html = answer.read().decode()
    policy = answer.headers['Content-Security-Policy']
assert "default-src 'none'" in policy and 'http:' not in policy, policy
outside = re.sub(r'http://www\.w3\.org/2000/svg', '', html)
assert not re.search(r'https?://|src=|@import|url\(', outside)


def status():
    return json.loads(subprocess.run([refrain, 'status', busy, '--json'],
                                     capture_output=True, check=True).stdout)


ended = threading.Event()


def read():
    """Read everything, without the kernel's pages, in new orders."""
    page = mmap.mmap(-1, 204800)
    while not ended.is_set():
        for i in random.sample(range(40), 40):
            fd = os.open(f'{busy}/f{i}', os.O_RDONLY | os.O_DIRECT)
            os.preadv(fd, [page], 0)
            os.close(fd)
            if ended.wait(.01):
                break


def text(id):
    return b.eval(f"document.getElementById('{id}').innerText")


def row(name):
    """Return the state of a mount at a glance."""
    return ("[...document.querySelectorAll('#mounts tr')].find(r => "
            "r.querySelector('a') && r.querySelector('a').textContent === "
            + json.dumps(name) + ").querySelector('.state').textContent")


def samples():
    return b.eval(f"(history.get({json.dumps(busy)}) || []).length")


def newer(n):
    b.wait(f"history.get({json.dumps(busy)}).length > {n}")


b = Browser(patience)
try:
    b.look(1280, 900)
    before = status()
    b.go(base + '#' + busy)
    b.wait("document.querySelectorAll('#mounts tbody tr').length === 2")
    b.wait("$('verdict-text').innerText === 'All 2 mounts are well'")
    assert b.eval("document.getElementsByTagName('img').length") == 0
    b.wait(f"{row(odd)} === 'well' && {row(busy)} === 'well'")
    assert b.eval("chosen") == busy

    # The plots must agree with the counters.
    reader = threading.Thread(target=read)
    reader.start()
    n = samples()
    newer(n + 3)
    b.wait("/^[\\d.]+ [kMG]?B.s, \\d+ % from the tier$/.test("
           "$('title-bytes').textContent)")
    b.wait("$('title-heat').textContent.startsWith('Reads: half within')")
    ended.set()
    reader.join()
    newer(samples() + 1)
    after = status()
    b.eval("document.querySelector('#plot-bytes details').open = true")
    b.wait("document.querySelectorAll('#plot-bytes tbody tr').length > 3")
    rows = b.eval("[...document.querySelectorAll('#plot-bytes tbody tr')].map("
                  "r => [...r.children].map(c => c.textContent))")
    shape = b.eval("""(() => {
        const svg = document.querySelector('#plot-bytes svg'), parts = {};
        for (const p of svg.querySelectorAll('path'))
            (parts[p.dataset.part] = parts[p.dataset.part] || []).push(
                p.getAttribute('d'));
        const all = history.get(chosen);
        return {max: +svg.dataset.max, parts, box: svg.getAttribute('viewBox'),
            span: Math.max(LEAST_MS, data.now_ms - all[0].ms) / 1000,
            frame: [LEFT + 4, TOP + BOTTOM]};
    })()""")


    def drawn(part):
        """Return the bytes that the area of the plot shows."""
        _, _, width, height = (float(x) for x in shape['box'].split())
        area = 0
        for path in shape['parts'].get(part, []):
            xy = [(float(x), float(y)) for x, y in re.findall(
                r'(-?[\d.]+) (-?[\d.]+)', path)]
            area += abs(sum(a[0] * c[1] - c[0] * a[1]
                            for a, c in zip(xy, xy[1:] + xy[:1]))) / 2
        return (area * shape['span'] / (width - shape['frame'][0])
                * shape['max'] / (height - shape['frame'][1]))


    for column, part, key in ((2, 'tier', 'hit_bytes'),
                              (4, 'origin', 'origin_bytes')):
        grown = after[key] - before[key]
        assert grown > 1000000, (key, grown)
        table = sum(int(r[column]) for r in rows)
        assert table == grown, (part, table, grown)
        assert abs(drawn(part) - grown) < .03 * grown, (part, drawn(part),
                                                       grown)

    # The source does not answer.
    os.kill(nginx, signal.SIGSTOP)
    ended.clear()
    reader = threading.Thread(target=read)
    reader.start()
    b.wait("document.getElementById('verdict').innerText.includes("
           + json.dumps(busy + ': The source has not answered for ') + ")")
    b.wait("$('verdict-text').innerText === '1 of 2 mounts is in trouble'")
    b.wait("document.title.startsWith('\u2716 ')")
    b.wait(f"{row(busy)} === 'trouble' && {row(odd)} === 'well'")
    b.wait("$('trouble').innerText.includes('The source has not answered')")
    b.wait("/^1 reader waits, the first for .*; the source is silent$/.test("
           "$('title-waits').textContent)")
    os.kill(nginx, signal.SIGCONT)
    b.wait(row(busy) + " !== 'trouble'", 60)
    ended.set()
    reader.join()

    # Use the keyboard: to the other mount and back; back in time and to now.
    b.eval("document.querySelector('#mounts a[aria-current]').focus()")
    b.key('ArrowDown' if b.eval("ordered()[0].mountpoint === chosen")
          else 'ArrowUp')
    b.wait("chosen === " + json.dumps(odd))
    assert text('depth-name') == odd
    assert b.eval("document.activeElement.textContent") == odd
    b.key('ArrowUp' if b.eval("ordered()[1].mountpoint === chosen")
          else 'ArrowDown')
    b.wait("chosen === " + json.dumps(busy))
    b.eval("document.querySelector('#plot-bytes svg').focus()")
    b.key('ArrowLeft')
    b.key('ArrowLeft')
    assert ' ago: ' in text('title-bytes'), text('title-bytes')
    b.key('Escape')
    assert ' ago: ' not in text('title-bytes'), text('title-bytes')

    # Show the page on a phone, in both colours.
    for dark in False, True:
        b.look(390, 844, dark)
        b.eval("draw()")
        assert b.eval("document.documentElement.scrollWidth") <= 390
        colours = b.eval("['color', 'backgroundColor'].map(k => "
                         "getComputedStyle(document.body)[k])")
        light = [sum(int(x) for x in re.findall(r'\d+', c)[:3])
                 for c in colours]
        assert (light[0] > light[1]) == dark, (dark, colours)

    # A daemon hangs, another one is dead, and then the exporter ends.
    os.kill(pids[1], signal.SIGSTOP)
    b.wait(row(odd) + " === 'hung'")
    assert b.eval("document.getElementById('verdict').innerText.includes("
                  "'kill -CONT %d')" % pids[1])
    os.kill(pids[1], signal.SIGKILL)
    b.wait(row(odd) + " === 'dead'")
    assert b.eval("ordered()[0].mountpoint") == odd
    os.kill(exporter, signal.SIGTERM)
    b.wait("document.getElementById('verdict-text').innerText.startsWith("
           "'The exporter does not answer')")
    assert all(u.startswith(base) or u in ('about:blank', 'data:,')
               for u in b.requests()), b.requests()
    said = [c for c in b.complaints()
            if 'ERR_CONNECTION_REFUSED' not in json.dumps(c)]
    assert not said, said
finally:
    ended.set()
    os.kill(nginx, signal.SIGCONT)
    b.close()
END
	fail 'see above'
echo PASS

# SPDX-License-Identifier: MIT
"""Scenarios of peers-faults.sh; usage: peers_faults.py REFRAIN READER HERD WORK
[SCENARIO ...]"""
import os
import signal
import subprocess
import sys
import threading
import time

from peer_hosts import PORT, Failed, inside, read_epoch, shards, total, wait_for
from peer_scene import expect, run_scenarios

# The longest time for which a read waits for a peer. The rest is the time of
# the origin, on a machine that is busy with other programs, too.
PEER_MS = 750
SPARE_MS = 2000


def interrupted(scene, seed, act, after=0.1):
    """Read an epoch, and call act() when the readers have read for `after`
    seconds. Return the longest time for a file in ms."""
    def later():
        begun = [h.status()['peer_hit_bytes'] for h in scene.cluster.hosts]
        time.sleep(after)
        del begun
        act()
    thread = threading.Thread(target=later)
    thread.start()
    _, said = read_epoch(scene.reader, scene.cluster,
                         shards(scene.files, len(scene.cluster.hosts), seed),
                         threads=2, sums=scene.sums)
    thread.join()
    scene.settle()
    return max(s['max_ms'] for s in said)


def owned_by(scene, host):
    """Return the bytes that the engine of a host was given."""
    return sum(p['fill_bytes'] for h in scene.cluster.hosts
               for p in h.status()['peers'] if p['host'] == host.name)


def up_again(scene, host, seconds):
    def up():
        return all(p['state'] == 'up' for h in scene.cluster.hosts
                   for p in h.status()['peers'] if p['host'] == host.name)
    wait_for('%s is used again' % host.name, up, seconds)


def expect_share(what, got, share):
    """The tiers of 64K each may have some of the share."""
    if not share - 3 * (64 << 10) <= got <= share:
        raise Failed('%s: %s, not %s' % (what, got, share))


def engine_killed(scene):
    """Kill an engine: its part comes from the origin. After a restart, it is
    filled once more."""
    scene.begin(3, 64, '64K')
    scene.epoch(1)
    victim = scene.cluster.hosts[1]
    share = owned_by(scene, victim)
    ms = interrupted(scene, 2, victim.kill_engine)
    if ms > PEER_MS + SPARE_MS:
        raise Failed('a file took %g ms' % ms)
    got = scene.epoch(3)[0]
    expect_share('without it', got, share)
    victim.start_engine(64)
    up_again(scene, victim, 5)
    expect_share('filled again', scene.epoch(4)[0], share)
    # Items of a tier were not pushed again, so another host may still miss
    # them.
    expect_share('then', scene.epoch(5)[0], 3 * (64 << 10))
    scene.end()


def engine_stopped(scene):
    """Stop an engine, so that it does not answer. When it continues, its
    content is used again."""
    scene.begin(3, 64, '64K')
    scene.epoch(1)
    victim = scene.cluster.hosts[1]
    ms = interrupted(scene, 2,
                     lambda: victim.engine.send_signal(signal.SIGSTOP))
    if ms > PEER_MS + SPARE_MS:
        raise Failed('a file took %g ms' % ms)
    victim.engine.send_signal(signal.SIGCONT)
    up_again(scene, victim, 5)
    expect('then', scene.epoch(3), (0, 0))
    scene.end()


def holder_killed(scene):
    """Kill the mount that fetches an item; another one continues."""
    scene.begin(2, 64, '64K')
    first, second = scene.cluster.hosts
    name = max(scene.files, key=scene.files.get)
    for h in scene.cluster.hosts:
        h.stop_mount()
    peers = [h.name for h in scene.cluster.hosts]
    first.start_mount('64K', '--fault', 'delay=600s', peers=peers)
    second.start_mount('64K', peers=peers)
    for h in scene.cluster.hosts:
        h.wait_mount(up=2)
    readers = []
    for h in scene.cluster.hosts:
        readers.append(subprocess.Popen(
            ['cat', os.path.join(h.mnt, name)], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL))
        if h is first:  # the host has the lease by then
            wait_for('the lease', lambda: first.status()['peer_misses'] > 0)
    # the holder of the lease lives, so the other host waits for it
    time.sleep(1.0)
    if readers[1].poll() is not None:
        raise Failed('nobody waited for the holder of the lease')
    first.daemon.kill()
    killed = time.monotonic()
    data, _ = readers[1].communicate()
    took = time.monotonic() - killed
    with open(os.path.join(scene.source, name), 'rb') as f:
        expect('the right bytes', data == f.read(), True)
    if took > 1 + SPARE_MS / 1000:
        raise Failed('others went on after %g s' % took)
    readers[0].kill()
    first.daemon.wait()
    first.daemon = None
    subprocess.run(['umount', '-l', first.mnt], check=True)
    readers[0].wait()
    scene.end()


def values_damaged(scene):
    """Check that each damaged value is counted, and none is used."""
    log = os.path.join(scene.work, 'damaged')
    here = os.path.dirname(os.path.abspath(__file__))
    scene.begin(3, 64, '64K')
    scene.unmount()
    victim = scene.cluster.hosts[2]
    victim.kill_engine()
    victim.start_engine(64, port=PORT + 1)
    proxy = victim.start([sys.executable, os.path.join(here, 'peer_proxy.py'),
                          victim.ip, str(PORT), str(PORT + 1), '20', log])
    victim.wait_port(proxy, PORT)
    scene.mount('64K')
    for seed in range(1, 5):
        scene.epoch(seed)  # epoch() compares the sums
    with open(log) as f:
        damaged = len(f.readlines())
    if damaged < 6:
        raise Failed('%d values were damaged' % damaged)
    expect('peer_bad', total(scene.cluster.hosts, 'peer_bad'), damaged)
    said = ''
    for h in scene.cluster.hosts:
        with open(h.errors, encoding='utf-8', errors='replace') as f:
            said += f.read()
    if 'with a wrong checksum' not in said:
        raise Failed('no log says that units were damaged')
    scene.end()
    proxy.kill()
    proxy.wait()


def secrets_differ(scene):
    """Use hosts with different secrets: this is reported, and not as damaged
    memory."""
    scene.begin(2, 64, '64K')
    scene.unmount()
    names = [h.name for h in scene.cluster.hosts]
    for h in scene.cluster.hosts:
        path = os.path.join(scene.work, 'secret%d' % h.number)
        with open(path, 'w') as f:
            f.write('the secret of host %d' % h.number)
        os.chmod(path, 0o600)
        h.clear()
        os.remove(h.errors)
        h.start_mount('64K', '--peer-secret', path, peers=names)
    for h in scene.cluster.hosts:
        h.wait_mount(up=2)
    wait_for('it is said', lambda: all(
        p['secret'] == ('same' if p['self'] else 'differs')
        for h in scene.cluster.hosts for p in h.status()['peers']))
    for seed in 1, 2:
        scene.epoch(seed)
    if total(scene.cluster.hosts, 'peer_bad') == 0:
        raise Failed('they can read what the other stored')
    for h in scene.cluster.hosts:
        if not any('another --peer-secret' in s for s in h.status()['limits']):
            raise Failed('host %d: %s' % (h.number, h.status()['limits']))
        with open(h.errors, encoding='utf-8', errors='replace') as f:
            said = f.read()
        if 'has another --peer-secret' not in said or \
                'wrong checksum' in said:
            raise Failed('host %d said: %s' % (h.number, said))
    scene.end()


def settings_refused(scene):
    """Check that a server that could lose items is not used, and that the
    reason is reported."""
    bad = (({'never_evict': False}, '-M'),
           ({'options': 'slab_reassign'}, 'no_slab_reassign'),
           ({'options': 'no_slab_reassign,ext_path=%s:64m' %
             os.path.join(scene.work, 'ext')}, 'ext_path'))
    for settings, word in bad:
        scene.begin(1, 64, '64K')
        scene.unmount()
        host = scene.cluster.hosts[0]
        host.kill_engine()
        host.start_engine(64, **settings)
        p = subprocess.run(inside(host.ns, scene.refrain, 'peers', host.name),
                           stdout=subprocess.PIPE, check=False)
        expect('exit status of peers', p.returncode, 1)
        said = p.stdout.decode()
        if 'refused' not in said or word not in said:
            raise Failed('about %s: %s' % (word, said))
        host.start_mount('64K', peers=[host.name])
        host.wait_mount(up=0)
        status = host.status()
        expect('state', status['peers'][0]['state'], 'refused')
        if not any(word in s for s in status['limits']):
            raise Failed('about %s: %s' % (word, status['limits']))
        expect('all from the origin', scene.epoch(1)[0], scene.bytes)
        scene.end()


def lists_differ(scene):
    """Change times of files on one host: this is reported."""
    scene.begin(2, 64, '64K')
    wait_for('the lists agree', lambda: all(
        p['manifest'] == 'same' for h in scene.cluster.hosts
        for p in h.status()['peers'] if not p['self']), 30)
    path = os.path.join(scene.source, next(iter(scene.files)))
    was = os.stat(path)
    os.utime(path, (1, 1))
    first, second = scene.cluster.hosts
    subprocess.run([scene.refrain, 'refresh', first.mnt], check=True,
                   stdout=subprocess.DEVNULL)
    wait_for('the difference is seen', lambda: any(
        p['manifest'] == 'differs' for p in second.status()['peers']), 30)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    scene.end()


if __name__ == '__main__':
    sys.exit(run_scenarios(sys.argv[1:], engine_killed, engine_stopped,
                           holder_killed, values_damaged, secrets_differ,
                           settings_refused, lists_differ))

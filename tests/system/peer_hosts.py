# SPDX-License-Identifier: MIT
"""Runs hosts of a partitioned cache on one machine, for tests and measurements.

Each host is a network namespace with an address of its own, connected to the
others by a switch in another namespace. A rate limits the bytes that the host
sends and receives. A host runs memcached and mounts a source with refrain.
All processes are children of this one; close() ends them."""
import json
import os
import shutil
import signal
import subprocess
import time

PORT = 11211
LATENCY = '50ms'


class Failed(Exception):
    """A condition did not become true, or a command failed."""


def wait_for(what, condition, seconds=20.0):
    """Wait until condition() is true; return its value."""
    patience = float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))
    end = time.monotonic() + seconds * patience
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed('after %g s: %s' % (seconds * patience, what))
        time.sleep(0.02)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def namespace():
    """Start a process that holds a network namespace."""
    p = subprocess.Popen(['unshare', '-n', 'sleep', 'infinity'])
    ours = os.readlink('/proc/self/ns/net')

    def apart():
        try:
            return os.readlink('/proc/%d/ns/net' % p.pid) != ours and \
                open('/proc/%d/comm' % p.pid).read() == 'sleep\n'
        except OSError:
            return False
    wait_for('a network namespace', apart)
    return p


def inside(p, *words):
    return ['nsenter', '-t', str(p.pid), '-n', *words]


def limit(p, device, mbit):
    """Limit the rate at which the device sends to `mbit` Mbit/s; 0: no
    limit."""
    subprocess.run(inside(p, 'tc', 'qdisc', 'del', 'dev', device, 'root'),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False)
    if mbit:
        burst = max(64, int(mbit / 4))  # in kB: 2 ms, and one segment
        run(*inside(p, 'tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf',
                    'rate', '%gmbit' % mbit, 'burst', '%dkb' % burst,
                    'latency', LATENCY))


class Host:
    """One host of a Cluster."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.ip = '10.77.0.%d' % number
        self.name = '%s:%d' % (self.ip, PORT)
        self.ns = namespace()
        self.engine = self.daemon = None
        self.mnt = os.path.join(cluster.work, 'mnt%d' % number)
        self.cache = os.path.join(cluster.cache, 'cache%d' % number)
        self.errors = os.path.join(cluster.work, 'host%d.err' % number)
        os.makedirs(self.mnt, exist_ok=True)
        port = 's%d' % number
        switch = cluster.switch
        run(*inside(switch, 'ip', 'link', 'add', port, 'type', 'veth', 'peer',
                    'name', 'e0', 'netns', str(self.ns.pid)))
        run(*inside(switch, 'ip', 'link', 'set', port, 'up'))
        for words in (('ip', 'addr', 'add', self.ip + '/24', 'dev', 'e0'),
                      ('ip', 'link', 'set', 'e0', 'up'),
                      ('ip', 'link', 'set', 'lo', 'up')):
            run(*inside(self.ns, *words))
        self.set_rate(cluster.mbit)

    def set_rate(self, mbit):
        run(*inside(self.cluster.switch, 'ip', 'link', 'set',
                    's%d' % self.number, 'master', 'br0'))
        limit(self.ns, 'e0', mbit)
        limit(self.cluster.switch, 's%d' % self.number, mbit)

    def drop_packets(self):
        """Drop all packets from and to the host, until set_rate()."""
        run(*inside(self.cluster.switch, 'ip', 'link', 'set',
                    's%d' % self.number, 'nomaster'))

    def start(self, words, **more):
        return subprocess.Popen(inside(self.ns, *words), **more)

    # -- The engine ----------------------------------------------------------

    def start_engine(self, mib, port=PORT, never_evict=True, growth=1.25,
                     options='no_slab_reassign,slab_chunk_max=16384'):
        words = ['memcached', '-u', 'root', '-m', str(mib), '-l', self.ip,
                 '-p', str(port), '-U', '0', '-B', 'ascii', '-t', '2', '-f',
                 str(growth)]
        if never_evict:
            words.append('-M')
        if options:
            words += ['-o', options]
        self.engine = self.start(words, stderr=subprocess.DEVNULL)
        self.wait_port(self.engine, port)

    def wait_port(self, process, port):
        want = ':%04X ' % port

        def listens():
            if process.poll() is not None:
                raise Failed('a server on port %d ended' % port)
            with open('/proc/%d/net/tcp' % self.ns.pid) as f:
                return any(want in line.split('00000000:0000')[0] and
                           ' 0A ' in line for line in f)
        wait_for('a server on port %d' % port, listens)

    def kill_engine(self):
        self.engine.kill()
        self.engine.wait()

    # -- The mount -----------------------------------------------------------

    def start_mount(self, tier, *options, peers=None, group=None,
                    source=None):
        """Mount with a tier of that size; `peers` is the list of hosts."""
        words = [self.cluster.refrain, 'mount', '--foreground',
                 source or self.cluster.source, self.mnt, '--cache',
                 self.cache + ':' + tier, *options]
        if peers:
            words += ['--peers', ','.join(peers)]
            if self.name in peers:
                words += ['--peer-name', self.name]
        if group:  # start the daemon in a control group that limits its rate
            words = ['sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"',
                     group] + words
        with open(self.errors, 'ab') as err:
            self.daemon = self.start(words, stderr=err)

    def wait_mount(self, up=None):
        """Wait until the mount has all names, and `up` peers are up."""
        def there():
            if self.daemon.poll() is not None:
                raise Failed('host %d: the mount ended: %s' %
                             (self.number, open(self.errors).read()))
            s = self.status()
            return s and s.get('ready') and s.get('scan') == 'complete' and \
                (up is None or sum(p['state'] == 'up'
                                   for p in s.get('peers', [])) == up)
        wait_for('host %d is ready' % self.number, there, 30)

    def status(self):
        p = subprocess.run([self.cluster.refrain, 'status', '--json',
                            self.mnt], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, check=False)
        return json.loads(p.stdout) if p.returncode == 0 else None

    def stop_mount(self):
        if not self.daemon:
            return
        run(self.cluster.refrain, 'umount', self.mnt)
        self.daemon.wait()
        self.daemon = None

    def forget(self):
        """Make the kernel drop the names and pages of the mount."""
        subprocess.run(['mount', '-i', '-o', 'remount,ro', self.mnt],
                       check=True)

    def clear(self):
        """Remove the tier of a host that has no mount."""
        shutil.rmtree(self.cache, ignore_errors=True)


class Cluster:
    """`work`: directory for mounts and logs; `cache`: directory for tiers."""

    def __init__(self, refrain, work, source, mbit=0, cache=None):
        self.refrain, self.work, self.source = refrain, work, source
        self.mbit = mbit
        self.cache = cache or work
        self.hosts = []
        self.switch = namespace()
        run(*inside(self.switch, 'ip', 'link', 'add', 'br0', 'type', 'bridge'))
        run(*inside(self.switch, 'ip', 'link', 'set', 'br0', 'up'))

    def add(self):
        self.hosts.append(Host(self, len(self.hosts) + 1))
        return self.hosts[-1]

    def tell(self):
        """Print the messages of the daemons, and their counters of peers."""
        for h in self.hosts:
            with open(h.errors, encoding='utf-8', errors='replace') as f:
                print('-- host %d\n%s' % (h.number, f.read()[-2000:]))
            s = h.status() if h.daemon and h.daemon.poll() is None else None
            for name in s or ():
                if name.startswith('peer') or name in (
                        'origin_bytes', 'origin_reads', 'resident_bytes'):
                    print('   %s: %s' % (name, s[name]))

    def close(self):
        for h in self.hosts:
            if h.daemon:
                h.daemon.kill()
                h.daemon.wait()
                subprocess.run(['umount', '-l', h.mnt], check=False,
                               stderr=subprocess.DEVNULL)
            if h.engine:
                h.engine.send_signal(signal.SIGCONT)
                h.kill_engine()
            h.ns.kill()
            h.ns.wait()
        self.hosts = []
        self.switch.kill()
        self.switch.wait()


def total(hosts, name, before=None):
    """Return the sum of a member of the statuses, less the sum in `before`."""
    now = sum(h.status()[name] for h in hosts)
    return now - sum(s[name] for s in before) if before else now


def origin_bytes(hosts, before=None):
    """Return the bytes from the origin, without those of units that were
    read to compare them."""
    return total(hosts, 'origin_bytes', before) - \
        total(hosts, 'peer_check_bytes', before)


def shards(files, n, seed):
    """Divide the files into n disjoint parts; each seed gives other parts."""
    import random
    order = sorted(files)
    random.Random(seed).shuffle(order)
    return [order[i::n] for i in range(n)]


def part_of_sums(sums, part, to):
    """Write the lines of a file of sums for these files, in their order."""
    with open(sums) as f:
        lines = {line.rstrip('\n').split(' ', 2)[2]: line
                 for line in f}
    with open(to, 'w') as f:
        f.writelines(lines[name] for name in part)


def read_epoch(reader, cluster, parts, threads=8, sums=None, more=()):
    """Let each host read its part at the same time. Return the seconds, and
    the results of the readers as objects."""
    running = []
    begin = time.monotonic()
    for h, part in zip(cluster.hosts, parts):
        names = os.path.join(cluster.work, 'names%d' % h.number)
        part = sorted(part)
        with open(names, 'w') as f:
            f.writelines(name + '\n' for name in part)
        words = [reader, h.mnt, '--json', '--forget', '-t', str(threads),
                 '--files-from', names, '--seed', str(time.time_ns() % 9999),
                 *more]
        if sums:
            part_of_sums(sums, part, names + '.sums')
            words += ['--sums', names + '.sums']
        running.append(subprocess.Popen(words, stdout=subprocess.PIPE))
    said = []
    for p in running:
        out, _ = p.communicate()
        if p.returncode != 0:
            raise Failed('a reader failed: %s' % out.decode())
        said.append(json.loads(out.decode().splitlines()[-1]))
    return time.monotonic() - begin, said

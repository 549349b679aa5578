#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tries the protocol of the preparation service with racing clients.

`service_model.py [--seconds S] [--seed N] [FAULT ...]` starts a board and a
store (memcached, on unix sockets in a temporary directory), workers and
readers as threads, and lets faults happen at random: worker-stop, worker-kill,
reader-stop, board-restart, board-stop, store-restart, store-stop, store-full,
lost-answer. Two readers share one stream, a third reads another. The model
beside them is the name of a sample: each value must be the one that a lone
loader would make, in the lone loader's order. Exit status 1 if a reader got
another value, waited too long, or the ledger does not add up.

The work is a sleep, so that processor time does not decide.
"""
import argparse
import collections
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

N = 8  # fresh numbers in a range
B = 16  # servings in a step, half of them fresh: echo factor 2
LAG = 64  # an echo comes this many fresh numbers after the first serving
STEP_S = 0.1
MAKE_S = 0.005  # to make one example's samples, anywhere
HOPELESS = 24  # what is needed before a worker could finish it
DEPTH = 4  # steps that a reader prepares ahead
LEASE_S, BEAT_S, READER_TTL = 4, 1.0, 6
PULL_S = 0.25
BODY = b"x" * 20000


class Down(Exception):
    pass


class Client:
    """Pipelined meta commands on one connection; one thread at a time."""

    def __init__(self, path):
        self.path, self.sock, self.rest, self.fails = path, None, 0, 0
        self.buf = b""

    def connect(self):
        if time.monotonic() < self.rest:
            raise Down
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PULL_S)
        self.sock.connect(self.path)
        self.buf = b""

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None

    def lines(self, n):
        out = []
        end = time.monotonic() + PULL_S
        while len(out) < n:
            eol = self.buf.find(b"\r\n")
            if eol >= 0:
                head = self.buf[:eol].split()
                size = int(head[1]) + 2 if head[0] == b"VA" else 0
                if len(self.buf) >= eol + 2 + size:
                    value = self.buf[eol + 2 : eol + size] if size else None
                    self.buf = self.buf[eol + 2 + size :]
                    out.append((head[0].decode(), head, value))
                    continue
            if time.monotonic() > end:
                raise socket.timeout
            got = self.sock.recv(1 << 20)
            if not got:
                raise OSError("closed")
            self.buf += got
        return out

    def ask(self, commands, lose=False):
        """Returns [(word, head, value)]; raises Down."""
        if not commands:
            return []
        try:
            if not self.sock:
                self.connect()
            self.sock.sendall(b"".join(commands))
            if lose:  # the server acts, the answer never comes
                raise OSError("lost")
            out = self.lines(len(commands))
            self.fails = 0
            return out
        except OSError as why:
            self.close()
            self.fails += 1
            if self.fails >= 3:
                self.rest = time.monotonic() + 1
            raise Down from why


def mg(key, flags="v c"):
    return f"mg {key} {flags}\r\n".encode()


def ms(key, value, flags):
    value = value if isinstance(value, bytes) else value.encode()
    return f"ms {key} {len(value)} {flags}\r\n".encode() + value + b"\r\n"


def md(key, flags=""):
    return f"md {key} {flags}\r\n".encode()


def cas_of(head):
    return next(w[1:].decode() for w in head if w[:1] == b"c")


class Count(collections.Counter):
    lock = threading.Lock()

    def add(self, what, n=1):
        with self.lock:
            self[what] += n


COUNT = Count()


def sample_key(p, f, k):
    return f"rs1:{p}:{f:08x}.{k}.2"


def sample(p, f, k):
    return f"{p}/{f}/{k}".encode() + BODY


def range_key(p, f0):
    return f"rs1:{p}:r:0.1.0.{f0:08x}.k"


class Member(threading.Thread):
    """A thread that the driver can stop and kill at any of its checkpoints."""

    def __init__(self, site, name):
        super().__init__(name=name, daemon=True)
        self.site, self.stopped_until, self.killed = site, 0, False
        self.board, self.store = Client(site.board), Client(site.store)
        self.rng = random.Random(f"{site.seed} {name}")

    def checkpoint(self):
        while time.monotonic() < self.stopped_until and not self.killed:
            time.sleep(0.02)
        if self.killed or self.site.over:
            raise SystemExit

    def listed(self, key, name):
        """Keep `name` in the list at `key`, by compare-and-set."""
        for _ in range(8):
            (word, head, value), = self.board.ask([mg(key)])
            names = value.decode().split() if word == "VA" else []
            if name in names:
                return
            flags = f"C{cas_of(head)} T600" if word == "VA" else "ME T600"
            names.append(name)
            (word, *_), = self.board.ask([ms(key, " ".join(names), flags)])
            if word == "HD":
                return


class Worker(Member):
    def jobs(self):
        (word, _, value), = self.board.ask([mg("rs1:jobs")])
        return value.decode().split() if word == "VA" else []

    def readers(self, p):
        (word, _, value), = self.board.ask([mg(f"rs1:{p}:readers")])
        ids = value.decode().split() if word == "VA" else []
        got = self.board.ask([mg(f"rs1:{p}:i:{i}") for i in ids])
        return [tuple(map(int, v.split())) for w, _, v in got if w == "VA"]

    def wanted(self, p):
        """Free ranges of the job, those that are needed first before."""
        starts = set()
        for _, begin, end in self.readers(p):
            starts.update(range(-(-begin // N) * N, end, N))
        starts = sorted(starts)
        got = self.board.ask([mg(range_key(p, f0)) for f0 in starts])
        return [f0 for f0, (w, *_) in zip(starts, got) if w == "EN"]

    def passed(self, p, f0):
        cursors = [c for c, *_ in self.readers(p)]
        return not cursors or all(c >= f0 + N for c in cursors)

    def renew(self, key, claim, value, ttl):
        """Replace our claim. True: done, False: it is another's, None: gone.
        The number of a value begins anew when a server restarts, so the nonce
        is compared, too."""
        (word, head, old), = self.board.ask([mg(key)])
        if word == "EN":
            return None
        if old.decode() != claim:
            return False
        (word, *_), = self.board.ask(
            [ms(key, value, f"C{cas_of(head)} T{ttl}")])
        return True if word == "HD" else None if word == "NF" else False

    def claim(self, p, f0):
        nonce = f"{self.rng.getrandbits(48):x}"
        claim = f"T {self.name} {nonce} {self.site.store}"
        lose = self.site.on("lost-answer") and self.rng.random() < 0.05
        self.doubt = (p, f0, claim)
        (word, *_), = self.board.ask(
            [ms(range_key(p, f0), claim, f"ME T{LEASE_S}")], lose)
        if word != "HD":
            self.doubt = None
        return claim if word == "HD" else None

    def resolve(self):
        """The board was lost in the middle of a claim: is it still ours?"""
        p, f0, claim = self.doubt
        ours = self.renew(range_key(p, f0), claim, claim, LEASE_S)
        if ours:
            COUNT.add("claims found")
            self.make(p, f0, claim)
        else:
            self.lost(p, f0)
        self.mine, self.doubt = [], None

    def push(self, p, f):
        """One decode, two servings. NS: another has pushed the same bytes."""
        got = self.store.ask([ms(sample_key(p, f, k), sample(p, f, k),
            "ME T600 c") for k in (0, 1)])
        for k, (word, head, _) in enumerate(got):
            if word not in ("HD", "NS"):
                COUNT.add("refused")
                return False
            if word == "HD":
                self.mine.append((sample_key(p, f, k), cas_of(head)))
        return True

    def drop(self):
        try:
            self.store.ask([md(k, f"C{c}") for k, c in self.mine])
        except Down:
            COUNT.add("leaked", len(self.mine))
        self.mine = []

    def make(self, p, f0, claim):
        key, beat, mask = range_key(p, f0), time.monotonic(), 0
        have = self.store.ask([mg(sample_key(p, f, k), "")
            for f in range(f0, f0 + N) for k in (0, 1)])
        for i, f in enumerate(range(f0, f0 + N)):
            self.checkpoint()
            if have[2 * i][0] == "HD" and have[2 * i + 1][0] == "HD":
                COUNT.add("reused")
                mask |= 1 << i
                continue
            time.sleep(MAKE_S)
            COUNT.add("decodes")
            self.checkpoint()
            if not self.push(p, f):
                self.refused = time.monotonic()
                break
            mask |= 1 << i
            if time.monotonic() - beat > BEAT_S:
                beat = time.monotonic()
                if self.renew(key, claim, claim, LEASE_S) is False:
                    return self.lost(p, f0)
        self.checkpoint()
        if mask:
            self.finish(p, f0, claim, mask)
        elif self.renew(key, claim, claim, 1):
            COUNT.add("given back")

    def finish(self, p, f0, claim, mask):
        key, done = range_key(p, f0), f"D {self.site.store} {mask}"
        rc = self.renew(key, claim, done, 600)
        if rc is None and not self.passed(p, f0):
            (word, *_), = self.board.ask([ms(key, done, "ME T600")])
            rc = True if word == "HD" else False
        if rc is None:
            COUNT.add("passed")
            self.drop()
        elif rc is False:
            self.lost(p, f0)
        else:
            self.site.done.add((p, f0))
            if self.passed(p, f0):  # the last reader may not see this D
                COUNT.add("passed late")
                self.board.ask([md(key)])
                self.drop()

    def lost(self, p, f0):
        """Another has the range. What it names in this store is its own now:
        samples are equal, and whose push came first decides nothing."""
        COUNT.add("lost")
        (word, _, value), = self.board.ask([mg(range_key(p, f0))])
        state = value.decode().split() if word == "VA" else ["-"]
        if state[0] == "T" and state[3] == self.site.store:
            return
        if state[0] == "D" and state[1] == self.site.store:
            return
        self.drop()

    def once(self):
        if self.doubt:
            self.resolve()
        self.listed("rs1:workers", self.name)
        for p in self.jobs():
            free = self.wanted(p)
            if not free or time.monotonic() - self.refused < 0.2:
                continue
            f0 = self.rng.choice(free[:3])
            claim = self.claim(p, f0)
            if claim:
                self.make(p, f0, claim)
                self.mine, self.doubt = [], None
                return True
        return False

    def run(self):
        self.mine, self.refused, self.doubt = [], 0, None
        while True:
            try:
                self.checkpoint()
                if not self.once():
                    time.sleep(0.05)
            except Down:
                COUNT.add("worker down")
                time.sleep(0.1)


class Reader(Member):
    """The reader's board is used by poll(), its store by fetch()."""

    def __init__(self, site, name, p, steps):
        super().__init__(site, name)
        self.p, self.steps, self.lock = p, steps, threading.Condition()
        self.notes = collections.deque()  # for the board, by the poll thread
        self.state, self.cas, self.ready, self.served = {}, {}, {}, 0
        self.t_served = time.monotonic()
        self.remote = self.local = 0
        self.longest, self.wrong, self.gone = 0, 0, False
        self.told = 0  # the cursor that the board has
        self.deleted = 0  # all ranges below are deleted
        self.broom = Client(site.store)

    def plan(self, step):
        f = step * B // 2
        fresh = [(g, 0) for g in range(f, f + B // 2)]
        return fresh + [(g, 1) for g in
            range(f - LAG, f - LAG + B // 2) if g >= 0]

    def cursor(self):
        return max(0, self.served * B // 2 - LAG)

    # -- Polling, the cursor, deletion -- one thread

    def poll(self):
        tell = 0
        while not self.gone:
            try:
                self.checkpoint()
                if time.monotonic() > tell:
                    self.tell()
                    tell = time.monotonic() + 0.2
                self.look()
                while self.notes:
                    self.board.ask([self.notes.popleft()])
                self.delete()
            except Down:
                COUNT.add("reader down")
            time.sleep(0.02)

    def tell(self):
        key = f"rs1:{self.p}:i:{self.name}"
        cursor, here = self.cursor(), self.served * B // 2
        value = f"{cursor} {here + HOPELESS} {here + self.site.ahead}"
        self.board.ask([ms(key, value, f"T{READER_TTL}")])
        self.told = cursor
        self.listed(f"rs1:{self.p}:readers", self.name)
        self.listed("rs1:jobs", self.p)

    def look(self):
        lo, hi = self.cursor() // N * N, self.served * B // 2 + self.site.ahead
        want = [f for f in range(lo, hi, N) if f not in self.state]
        got = self.board.ask([mg(range_key(self.p, f)) for f in want])
        for f, (word, head, value) in zip(want, got):
            if word == "VA" and value.startswith(b"D "):
                self.state[f] = int(value.split()[2])
                self.cas[f] = cas_of(head)

    def others(self):
        (word, _, value), = self.board.ask([mg(f"rs1:{self.p}:readers")])
        ids = value.decode().split() if word == "VA" else []
        got = self.board.ask([mg(f"rs1:{self.p}:i:{i}")
            for i in ids if i != self.name])
        return [int(v.split()[0]) for w, _, v in got if w == "VA"]

    def delete(self):
        """The slowest reader deletes what it has passed: state, samples."""
        upto = self.told // N * N
        if upto == self.deleted:
            return
        if any(c < self.told for c in self.others()):
            return
        self.board.ask([md(range_key(self.p, f0))
            for f0 in range(self.deleted, upto, N)])
        self.broom.ask([md(sample_key(self.p, f, k))
            for f in range(self.deleted, upto) for k in (0, 1)])
        self.deleted = upto

    # -- Fetching -- one thread

    def due(self, step):
        return self.t_served + (step - self.served) * STEP_S

    def fetch_step(self, step):
        want, out = self.plan(step), {}
        while len(out) < len(want):
            self.checkpoint()
            todo = [x for x in want if x not in out]
            here = [x for x in todo if self.state.get(x[0] // N * N, 0)
                >> x[0] % N & 1]
            out.update(self.pull(here))
            late = time.monotonic() > self.due(step) - 2 * MAKE_S * B
            miss = [x for x in here if x not in out]
            for x in todo if late else miss:
                if x not in out:
                    out[x] = self.make(*x)
            if len(out) < len(want):
                time.sleep(0.01)
        return [out[x] for x in want]

    def pull(self, keys):
        try:
            got = self.store.ask([mg(sample_key(self.p, *x)) for x in keys])
        except Down:
            COUNT.add("pulls failed")
            return {}
        out = {}
        for x, (word, _, value) in zip(keys, got):
            if word == "VA" and value == sample(self.p, *x):
                out[x] = value
                self.remote += 1
            else:
                COUNT.add("missing")
                f0 = x[0] // N * N
                self.state[f0] &= ~(1 << x[0] % N)
                if f0 in self.cas:  # it promises what is not there
                    self.notes.append(md(range_key(self.p, f0),
                        f"C{self.cas.pop(f0)}"))
        return out

    def make(self, f, k):
        self.local += 1
        if f // N * N not in self.state:
            COUNT.add("late")
            self.notes.append(ms(range_key(self.p, f // N * N),
                f"L {self.name}", "ME T60"))
        time.sleep(MAKE_S)
        COUNT.add("decodes here")
        return sample(self.p, f, k)

    def fetch(self):
        for step in range(self.steps):
            with self.lock:
                self.lock.wait_for(lambda: step < self.served + DEPTH)
            batch = self.fetch_step(step)
            with self.lock:
                self.ready[step] = batch
                self.lock.notify_all()

    # -- The trainer

    def run(self):
        self.poller = threading.Thread(target=self.poll, daemon=True)
        self.poller.start()
        threading.Thread(target=self.fetch, daemon=True).start()
        for step in range(self.steps):
            t0 = time.monotonic()
            with self.lock:
                self.lock.wait_for(lambda: step in self.ready)
                batch = self.ready.pop(step)
            if self.stopped_until < t0 - 0.5 and step > 0:
                self.longest = max(self.longest, time.monotonic() - t0)
            self.wrong += batch != [sample(self.p, *x)
                for x in self.plan(step)]
            time.sleep(STEP_S)
            while time.monotonic() < self.stopped_until:
                time.sleep(0.02)
            with self.lock:
                self.served, self.t_served = step + 1, time.monotonic()
                self.lock.notify_all()
        self.leave()

    def leave(self):
        """Delete what is left, as a reader that closes does: first its own
        key, so that a worker that finishes sees that nobody waits."""
        self.gone = True
        self.poller.join()
        self.told = self.served * B // 2 + self.site.ahead + N
        for _ in range(20):
            try:
                self.board.ask([md(f"rs1:{self.p}:i:{self.name}")])
                self.delete()
                return
            except Down:
                time.sleep(0.5)
        COUNT.add("leaked")


class Site:
    def __init__(self, where, args):
        self.seed, self.faults, self.over = args.seed, args.faults, False
        self.ahead = args.ahead // N * N
        self.board = os.path.join(where, "board")
        self.store = os.path.join(where, "store")
        self.done, self.proc = set(), {}
        for path in (self.board, self.store):
            self.start(path)

    def on(self, fault):
        return fault in self.faults

    def start(self, path):
        if os.path.exists(path):
            os.unlink(path)
        args = ["memcached", "-s", path, "-m", "64", "-t", "1"]
        if os.geteuid() == 0:
            args += ["-u", "root"]
        if path == self.store:
            args += ["-M", "-o", "no_slab_reassign,slab_chunk_max=16384"]
        self.proc[path] = subprocess.Popen(args)
        while not os.path.exists(path):
            time.sleep(0.01)

    def restart(self, path):
        self.proc[path].kill()
        self.proc[path].wait()
        self.start(path)

    def pause(self, path, seconds):
        self.proc[path].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.proc[path].send_signal(signal.SIGCONT)

    def fill(self):
        client = Client(self.store)
        for i in range(8000):
            try:
                (word, *_), = client.ask([ms(f"foreign{i}", BODY * 7, "T4")])
            except Down:
                break
            if word != "HD":
                COUNT.add("fills")
                break
        client.close()

    def crawl(self):
        client = Client(self.store)
        try:
            client.ask([b"lru_crawler crawl all\r\n"])
        except Down:
            pass
        client.close()

    def end(self):
        self.over = True
        for p in self.proc.values():
            p.send_signal(signal.SIGCONT)
            p.kill()
            p.wait()


def drive(site, rng, members):
    """One fault."""
    fault = rng.choice(site.faults)
    workers = [m for m in members if isinstance(m, Worker)]
    if fault == "worker-stop":
        m = rng.choice(workers)
        m.stopped_until = time.monotonic() + rng.uniform(1, 9)
    elif fault == "worker-kill":
        m = rng.choice(workers)
        m.killed = True
        members.remove(m)
        members.append(Worker(site, f"w{rng.getrandbits(32):x}"))
        members[-1].start()
    elif fault == "reader-stop":
        m = rng.choice([m for m in members if isinstance(m, Reader)])
        m.stopped_until = time.monotonic() + rng.uniform(1, 9)
    elif fault == "store-full":
        site.fill()
        time.sleep(5)
        site.crawl()
    elif fault.endswith("restart"):
        site.restart(site.board if "board" in fault else site.store)
    elif fault.endswith("-stop"):
        site.pause(site.board if "board" in fault else site.store,
            rng.uniform(0.5, 6))


def left(site):
    """Samples that nobody deleted."""
    client = Client(site.store)
    client.connect()
    client.sock.sendall(b"lru_crawler metadump all\r\n")
    text = b""
    while not text.endswith(b"END\r\n"):
        text += client.sock.recv(1 << 20)
    client.close()
    return text.count(b"key=rs1")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--ahead", type=int, default=96,
        help="fresh numbers (80 a second are needed)")
    parser.add_argument("--every", type=float, default=3,
        help="mean seconds between faults")
    parser.add_argument("faults", nargs="*")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    where = tempfile.TemporaryDirectory()
    site = Site(where.name, args)
    steps = int(args.seconds / STEP_S)
    readers = [Reader(site, n, p, steps)
        for n, p in (("a", "P"), ("b", "P"), ("c", "Q"))]
    members = readers + [Worker(site, f"w{i}") for i in range(args.workers)]
    for m in members:
        m.start()
    while any(r.is_alive() for r in readers):
        time.sleep(args.every * rng.uniform(0.5, 1.5))
        if args.faults and any(r.is_alive() for r in readers):
            drive(site, rng, members)
    for m in members:
        m.stopped_until = 0
    time.sleep(1.5)
    served = sum(len(r.plan(s)) for r in readers for s in range(steps))
    bad = sum(r.wrong for r in readers)
    got = sum(r.remote + r.local for r in readers)
    longest = max(r.longest for r in readers)
    bound = B * MAKE_S + 0.5
    print(" ".join(args.faults) or "no fault", f"seed {args.seed}:",
        f"servings {served}, remote {sum(r.remote for r in readers)}, local",
        sum(r.local for r in readers), f"wrong {bad},",
        f"longest {longest:.2f} s of {bound:.2f},",
        f"left in the store {left(site)},",
        dict(sorted(COUNT.items())), flush=True)
    site.end()
    sys.exit(bad > 0 or got != served or longest > bound)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""A proxy of memcached that damages values on their way to the client.

usage: peer_proxy.py LISTEN_IP PORT ENGINE_PORT ONE_IN LOG

One in ONE_IN values of 4 KiB or more is damaged: a byte is changed, the end
is cut off, or the value of another key replaces it. LOG gets a line for each
damaged value."""
import socket
import sys
import threading

LEAST = 4096
# The value of a unit begins with its writer and a checksum. If another writer
# stores the same unit again, only these differ, so that is not damage.
HEAD = 24


class Damage:
    def __init__(self, one_in, log):
        self.one_in, self.log = one_in, open(log, 'a', buffering=1)
        self.lock = threading.Lock()
        self.seen = self.done = 0
        # values to swap with, by length; 0: a value of any length
        self.last = {}

    def of(self, data):
        """Return the bytes to send in place of `data`."""
        with self.lock:
            self.seen += 1
            before = self.last.get(len(data), self.last.get(0))
            self.last[len(data)] = self.last[0] = data
            if self.seen % self.one_in:
                return data
            kind = self.done % 3
            if kind == 1 and (before is None or before[HEAD:] == data[HEAD:]):
                kind = 0
            self.done += 1
            self.log.write('%s\n' % ('changed', 'swapped', 'cut')[kind])
        if kind == 0:
            at = self.seen * 7919 % len(data)
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
        return before if kind == 1 else data[:len(data) // 2]


def requests(client, engine):
    try:
        while True:
            data = client.recv(1 << 16)
            if not data:
                break
            engine.sendall(data)
    except OSError:
        pass
    finally:
        engine.close()


def answers(client, engine, damage):
    try:
        stream = engine.makefile('rb')
        while True:
            line = stream.readline()
            if not line:
                break
            words = line.split()
            if words and words[0] == b'VA':
                data = stream.read(int(words[1]) + 2)[:-2]
                if len(data) >= LEAST:
                    data = damage.of(data)
                words[1] = b'%d' % len(data)
                line = b' '.join(words) + b'\r\n' + data + b'\r\n'
            client.sendall(line)
    except OSError:
        pass
    finally:
        client.close()


def main(ip, port, engine_port, one_in, log):
    damage = Damage(int(one_in), log)
    server = socket.create_server((ip, int(port)))
    while True:
        client, _ = server.accept()
        engine = socket.create_connection((ip, int(engine_port)))
        for s in client, engine:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=requests, args=(client, engine),
                         daemon=True).start()
        threading.Thread(target=answers, args=(client, engine, damage),
                         daemon=True).start()


if __name__ == '__main__':
    main(*sys.argv[1:])

# SPDX-License-Identifier: MIT
"""Sends a daemon the node ids of another instance of the mount.

foreign_ids.py REFRAIN SOURCE MOUNTPOINT CACHE: holds a mount, ends its daemon,
and gives the next one a socket in place of /dev/fuse. Over the socket, this
program acts as the kernel. Requests with the ids that the daemon has given must
be answered with the content of the source, and the same requests with the
instance of another mount with ESTALE.
"""

import array
import errno
import os
import signal
import socket
import struct
import sys

refrain, src, mnt, cache = sys.argv[1:5]
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, STATFS, GETXATTR, LISTXATTR, \
    OPENDIR, READDIR, READDIRPLUS = 1, 2, 3, 5, 14, 15, 17, 22, 23, 27, 28, 44
ROOT = 1
PATIENCE_S = 60 * float(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))


class Holder:
    """Stores the descriptors that the daemon sends by sd_notify(3)."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind('')
        self.socket.settimeout(PATIENCE_S)
        self.kept = {}

    def start(self, again):
        address = '@' + self.socket.getsockname()[1:].decode()
        names = list(self.kept)
        pid = os.fork()
        if pid > 0:
            return pid
        env = dict(os.environ, NOTIFY_SOCKET=address,
                   REFRAIN_HELD='again' if again else 'first')
        high = [os.dup(self.kept[name]) for name in names]
        high = [fd if fd > 20 else os.dup2(fd, 20 + i)
                for i, fd in enumerate(high)]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)
        if again:
            env.update(LISTEN_FDS=str(len(names)), LISTEN_PID=str(os.getpid()),
                       LISTEN_FDNAMES=':'.join(names))
        os.execve(refrain, [refrain, 'mount', src, mnt, '--cache', cache,
                            '--foreground'], env)

    def wait_ready(self):
        text = ''
        while 'READY=1' not in text:
            data, ancillary, _, _ = self.socket.recvmsg(4096, 256)
            text = data.decode()
            fields = dict(line.partition('=')[::2]
                          for line in text.split('\n'))
            for _, kind, fds in ancillary:
                if kind == socket.SCM_RIGHTS:
                    got = array.array('i')
                    got.frombytes(fds)
                    if 'FDNAME' in fields:
                        self.kept[fields['FDNAME']] = got[0]
                    else:
                        os.close(got[0])


class Kernel:
    """The other end of a connection."""

    def __init__(self):
        self.ours, self.theirs = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(PATIENCE_S)
        self.unique = 1000

    def send(self, opcode, node, body):
        self.unique += 2
        self.ours.send(struct.pack(
            '<IIQQIIIHH', 40 + len(body), opcode, self.unique, node,
            os.getuid(), os.getgid(), os.getpid(), 0, 0) + body)

    def ask(self, opcode, node, body=b''):
        """Send a request. Return (the error, the rest of the answer)."""
        self.send(opcode, node, body)
        while True:
            answer = self.ours.recv(1 << 20)
            size, error, unique = struct.unpack_from('<IiQ', answer)
            # Notifications have no number; the number of INIT is an old one.
            if unique == self.unique:
                assert size == len(answer)
                return -error, answer[16:]


def read_in(size):
    return struct.pack('<QQIIQII', 0, 0, size, 0, 0, os.O_RDONLY, 0)


# The requests that a kernel sends about a node.
REQUESTS = {
    'lookup': (LOOKUP, b'file\0'),
    'getattr': (GETATTR, bytes(16)),
    'read': (READ, read_in(4096)),
    'readdir': (READDIR, read_in(4096)),
    'readdirplus': (READDIRPLUS, read_in(4096)),
    'readlink': (READLINK, b''),
}


def check(kernel):
    error, entry = kernel.ask(LOOKUP, ROOT, b'dir\0')
    assert error == 0, error
    directory = struct.unpack_from('<Q', entry)[0]
    ids = {'dir': directory}
    for name in 'file', 'link':
        error, entry = kernel.ask(LOOKUP, directory, name.encode() + b'\0')
        assert error == 0, (name, error)
        ids[name] = struct.unpack_from('<Q', entry)[0]
    print('ids', {name: hex(node) for name, node in ids.items()})
    want = open(os.path.join(src, 'dir/file'), 'rb').read()
    instance = ids['file'] >> 32
    assert instance != 0 and len({n >> 32 for n in ids.values()}) == 1
    refused = 0
    for other in instance ^ 1, instance ^ 1 << 31, 0, instance + 1:
        other &= 0xffffffff
        for name, node in ids.items():
            foreign = other << 32 | node & 0xffffffff
            if foreign == ROOT:
                continue
            for what, (opcode, body) in REQUESTS.items():
                error, rest = kernel.ask(opcode, foreign, body)
                assert error == errno.ESTALE and not rest, (
                    what, name, hex(foreign), error, rest)
                refused += 1
            # This forget must not change the count of a node of this instance.
            kernel.send(FORGET, foreign, struct.pack('<Q', 1 << 20))
    error, data = kernel.ask(READ, ids['file'], read_in(4096))
    assert (error, data) == (0, want), error
    error, _ = kernel.ask(GETATTR, directory, bytes(16))
    assert error == 0, error
    error, data = kernel.ask(READLINK, ids['link'])
    assert (error, data) == (0, b'file'), (error, data)
    error, data = kernel.ask(READDIR, directory, read_in(4096))
    assert error == 0 and b'file' in data
    print(refused, 'requests were refused')


holder = Holder()
first = holder.start(False)
holder.wait_ready()
assert os.path.exists(os.path.join(mnt, 'dir/file'))
os.kill(first, signal.SIGKILL)
os.waitpid(first, 0)
kernel = Kernel()
connection = holder.kept['refrain-fuse']
holder.kept['refrain-fuse'] = kernel.theirs.fileno()
second = holder.start(True)
try:
    holder.wait_ready()
    kernel.theirs.close()
    check(kernel)
finally:
    os.kill(second, signal.SIGKILL)
    os.waitpid(second, 0)
    os.close(connection)

# SPDX-License-Identifier: MIT
"""Acts as systemd: starts a daemon, stores the descriptors that the daemon
sends (FDSTORE), and starts the daemon again with them when it was killed.

keep_fds.py PROGRAM [ARGUMENT ...]: ends when the daemon ends by itself.
KEEP_FDS_LOSE is the name of a descriptor that this program loses when the
daemon dies.
"""

import array
import os
import select
import socket
import sys

FIRST_FD = 3


def receive(heard, kept):
    """Act on the messages that the daemon has sent."""
    while True:
        try:
            data, ancillary, _, _ = heard.recvmsg(4096, 256,
                                                  socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        fields = dict(line.partition('=')[::2]
                      for line in data.decode().split('\n'))
        name = fields.get('FDNAME', '')
        for _, _, fds in ancillary:
            got = array.array('i')
            got.frombytes(fds)
            if 'FDSTORE' in fields:
                kept[name] = got[0]
            else:
                os.close(got[0])
        if 'FDSTOREREMOVE' in fields and name in kept:
            os.close(kept.pop(name))


def start(address, kept, command):
    pid = os.fork()
    if pid > 0:
        return pid
    env = dict(os.environ, NOTIFY_SOCKET='@' + address, FDSTORE='8')
    # Move the descriptors away, then to these numbers, with which they are
    # inherited.
    high = [os.dup2(fd, 100 + i) for i, fd in enumerate(kept.values())]
    for i, fd in enumerate(high):
        os.dup2(fd, FIRST_FD + i)
    os.closerange(FIRST_FD + len(high), 200)
    if kept:
        env.update(LISTEN_FDS=str(len(kept)), LISTEN_PID=str(os.getpid()),
                   LISTEN_FDNAMES=':'.join(kept))
    os.execve(command[0], command, env)


def listen(pid, heard, kept):
    """Act on messages until the daemon has ended. Return its status."""
    daemon = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(daemon, select.POLLIN)
    poll.register(heard, select.POLLIN)
    while daemon not in dict(poll.poll()):
        receive(heard, kept)
    os.close(daemon)
    _, status = os.waitpid(pid, 0)
    receive(heard, kept)
    return status


def main():
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind('')
    address = heard.getsockname()[1:].decode()
    kept = {}
    while True:
        pid = start(address, kept, sys.argv[1:])
        status = listen(pid, heard, kept)
        lost = kept.pop(os.environ.get('KEEP_FDS_LOSE'), None)
        if lost is not None:
            os.close(lost)
        if not os.WIFSIGNALED(status):
            sys.exit(os.WEXITSTATUS(status))


main()

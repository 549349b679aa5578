# SPDX-License-Identifier: MIT
"""Opens /dev/fuse, mounts it, and runs a command with the descriptor, like a
container runtime or a CSI driver.

    given_mount.py fusermount|mount DIRECTORY COMMAND ...

The word FD in COMMAND becomes /dev/fd/N. With fusermount, any user's mount
is of the type fuse.refrain; mount(2) makes one of the type fuse. Keeps its
own descriptor open until its standard input ends. Prints 'ended STATUS' when
the command has ended, and runs the command again for each further line of
its input.
"""
import array
import ctypes
import os
import socket
import subprocess
import sys

READ_ONLY, NOSUID, NODEV = 1, 2, 4


def by_fusermount(directory):
    here, there = socket.socketpair()
    with here, there:
        subprocess.run(
            ['fusermount3', '-o',
             'ro,nosuid,nodev,default_permissions,subtype=refrain',
             '--', directory],
            env={**os.environ, '_FUSE_COMMFD': str(there.fileno())},
            pass_fds=[there.fileno()], check=True)
        _, parts, _, _ = here.recvmsg(1, socket.CMSG_SPACE(4))
        fds = array.array('i')
        fds.frombytes(parts[0][2][:4])
        return fds[0]


def by_mount(directory):
    fd = os.open('/dev/fuse', os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f'fd={fd},rootmode=40000,user_id=0,group_id=0,default_permissions'
    if libc.mount(b'given', directory.encode(), b'fuse',
                  READ_ONLY | NOSUID | NODEV, options.encode()) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    return fd


def main():
    how, directory, *command = sys.argv[1:]
    fd = {'fusermount': by_fusermount, 'mount': by_mount}[how](directory)
    command = [f'/dev/fd/{fd}' if word == 'FD' else word for word in command]
    while True:
        status = subprocess.run(command, pass_fds=[fd]).returncode
        print('ended', status, flush=True)
        if not sys.stdin.readline():
            return


main()

# SPDX-License-Identifier: MIT
"""read_semantics.py make|compare SOURCE MOUNTPOINT: makes a source with all
kinds of files and names that a file system can have, or compares the mount
with it.
"""
import errno
import os
import random
import socket
import stat
import sys

what, source, mountpoint = sys.argv[1:]
src, mnt = os.fsencode(source), os.fsencode(mountpoint)
rng = random.Random(4)
wrong = []

# Components of 200 bytes down to a path of about 4,000 bytes.
DEEP = [b'deep'] + [b'%02d' % i + b'd' * 198 for i in range(19)]
NAMES = [b'x' * 255, b'caf\xe9', b'\xff\xfe\x80', b'new\nline', b'tab\there',
         b' ', b'-rf', b'*', b'a"b\'c\\d', 'æøå日本'.encode(), b'.hidden',
         b'with,comma', b'%41', b'...']


def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)


def open_dir(top, components):
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for c in components:
        down = os.open(c, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = down
    return fd


def make_deep():
    fd = os.open(src, os.O_RDONLY | os.O_DIRECTORY)
    for c in DEEP:
        os.mkdir(c, dir_fd=fd)
        down = os.open(c, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = down
    out = os.open(b'bottom', os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(out, b'at the bottom')
    os.close(out)
    os.close(fd)


def make():
    os.mkdir(src + b'/sizes')
    for size in 0, 1, 4096, 70001, 1000003, 3000017:
        write(src + b'/sizes/%d' % size, rng.randbytes(size))
    os.mkdir(src + b'/names')
    for n in NAMES:
        write(src + b'/names/' + n, b'I am ' + n)
        os.mkdir(src + b'/names/' + n[:253] + b'.d')
    os.mkdir(src + b'/links')
    for name, target in (('relative', '../sizes/4096'),
                         ('absolute', source + '/sizes/4096'),
                         ('dangling', 'nowhere/at/all'),
                         ('loop', 'loop'), ('directory', '../sizes'),
                         ('long', 't' * 4000), ('odd', b'caf\xe9')):
        os.symlink(target, os.path.join(src, b'links', os.fsencode(name)))
    write(src + b'/hard', b'two names')
    os.link(src + b'/hard', src + b'/sizes/hard too')
    os.mkdir(src + b'/special')
    os.mkfifo(src + b'/special/fifo')
    os.mknod(src + b'/special/null', 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chdir(src + b'/special')
    socket.socket(socket.AF_UNIX).bind('socket')
    os.mkdir(src + b'/modes')
    for mode in 0o400, 0o755, 0o777, 0o4755:
        write(src + b'/modes/%o' % mode, b'm')
        os.chmod(src + b'/modes/%o' % mode, mode)
    write(src + b'/modes/old', b'')
    os.utime(src + b'/modes/old', ns=(0, -1500000000))
    write(src + b'/modes/owned', b'')
    os.chown(src + b'/modes/owned', 1234, 5678)
    os.mkdir(src + b'/changes')
    write(src + b'/changes/file', b'as it was')
    os.mkdir(src + b'/changes/dir')
    os.symlink('file', src + b'/changes/link')
    try:
        os.setxattr(src + b'/changes/file', 'user.x', b'y')
    except OSError:
        pass  # then there is no such name to hide
    make_deep()


def check(good, *said):
    if not good:
        wrong.append(' '.join(map(str, said)))


def compare_one(path, there, here):
    a, b = os.lstat(there), os.lstat(here)
    for field in 'st_mode', 'st_uid', 'st_gid', 'st_mtime_ns':
        check(getattr(a, field) == getattr(b, field), path, field,
              getattr(a, field), getattr(b, field))
    check(stat.S_ISDIR(a.st_mode) or a.st_size == b.st_size, path, 'size')
    check(b.st_nlink == 1, path, 'has links')
    if stat.S_ISLNK(a.st_mode):
        check(os.readlink(there) == os.readlink(here), path, 'link')
    elif stat.S_ISREG(a.st_mode):
        with open(there, 'rb') as f, open(here, 'rb') as g:
            check(f.read() == g.read(), path, 'content')


def compare_dir(path):
    there, here = os.path.join(src, path), os.path.join(mnt, path)
    known = {n for n in os.listdir(there)
             if stat.S_IFMT(os.lstat(os.path.join(there, n)).st_mode)
             in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)}
    check(known == set(os.listdir(here)), path, 'names')
    kinds = {e.name: e.is_dir(follow_symlinks=False)
             for e in os.scandir(here)}
    for n in sorted(known):
        sub = os.path.join(path, n)
        if sub == DEEP[0]:
            continue
        compare_one(sub, os.path.join(there, n), os.path.join(here, n))
        if kinds.get(n):
            compare_dir(sub)


def compare_deep():
    fd = open_dir(mnt, DEEP)
    f = os.open(b'bottom', os.O_RDONLY, dir_fd=fd)
    check(os.read(f, 100) == b'at the bottom', 'the deep file')
    check(os.listdir(fd) == ['bottom'], 'the deep directory')
    os.close(f)
    os.close(fd)


def fails_with(code, call, *args):
    try:
        call(*args)
    except OSError as e:
        check(e.errno == code, call.__name__, args, 'ends with', e)
    else:
        check(False, call.__name__, args, 'succeeds')


def compare():
    compare_dir(b'')
    compare_deep()
    for n in b'fifo', b'null', b'socket':
        fails_with(errno.ENOENT, os.lstat, mnt + b'/special/' + n)
    check(os.listdir(mnt + b'/special') == [], 'special files')
    fails_with(errno.ENOENT, os.stat, mnt + b'/links/dangling')
    fails_with(errno.ENOENT, os.stat, mnt + b'/no such name')
    fails_with(errno.ENOTDIR, os.stat, mnt + b'/hard/below')
    fails_with(errno.ENAMETOOLONG, os.stat, mnt + b'/' + b'n' * 256)
    fails_with(errno.ELOOP, os.stat, mnt + b'/links/loop')
    fails_with(errno.EISDIR, os.open, mnt + b'/sizes', os.O_WRONLY)
    one, two = mnt + b'/hard', mnt + b'/sizes/hard too'
    check(os.stat(one).st_ino != os.stat(two).st_ino, 'hard links are one')
    check(os.listxattr(mnt + b'/changes/file') == [], 'extended attributes')
    fails_with(errno.ENODATA, os.getxattr, mnt + b'/changes/file', 'user.x')
    check(os.path.samefile(mnt + b'/links/directory', mnt + b'/sizes'),
          'a link to a directory')
    check(os.stat(mnt + b'/sizes/..').st_ino == os.stat(mnt).st_ino, '..')


make() if what == 'make' else compare()
if wrong:
    print('\n'.join(wrong[:20]))
sys.exit(1 if wrong else 0)

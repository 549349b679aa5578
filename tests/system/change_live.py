# SPDX-License-Identifier: MIT
"""change_live.py PART SOURCE MOUNTPOINT REFRAIN: changes a source under a mount
and looks at the mount. Each part prints a line about what it saw. If that
was wrong, it prints the reason and exits with 1.

The content of a file is its version, repeated, so that a mixture of versions
shows.
"""
import errno
import json
import mmap
import os
import subprocess
import sys
import threading
import time

part, src, mnt, refrain = sys.argv[1:]
SMALL, BIG = 5000, 4 << 20
FILES = 20
patience = int(os.environ.get('CK_TIMEOUT_MULTIPLIER', '1'))


def wrong(*words):
    print(*words)
    sys.exit(1)


def content(version, size):
    block = b'version %07d\n' % version
    return (block * (size // len(block) + 1))[:size]


def put(name, version, size):
    """Write another version atomically: readers of the source see the old or
    the new one."""
    path = os.path.join(src, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + '.new', 'wb') as f:
        f.write(content(version, size))
    os.utime(path + '.new', ns=(version * 10**9, version * 10**9))
    os.rename(path + '.new', path)


def change(name, version, size):
    """Write other bytes into the same file."""
    with open(os.path.join(src, name), 'r+b') as f:
        f.write(content(version, size))
    os.utime(os.path.join(src, name), ns=(version * 10**9, version * 10**9))


def get(name):
    with open(os.path.join(mnt, name), 'rb', buffering=0) as f:
        return f.readall()


def get_errno(name):
    try:
        get(name)
    except OSError as e:
        return e.errno
    return 0


def expect(name, version, size):
    got = get(name)
    if got != content(version, size):
        wrong(name, 'is not version', version, 'but', got[:16], len(got))


def expect_errno(name, code):
    got = get_errno(name)
    if got != code:
        wrong('reading', name, 'ends with', errno.errorcode.get(got, got),
              'not', errno.errorcode[code])


def inode(name):
    return os.stat(os.path.join(mnt, name)).st_ino


def drop():
    """Drop the kernel's pages of this mount, and of nothing else: see
    lib.sh."""
    subprocess.run(['mount', '-i', '-o', 'remount,ro', mnt], check=True)


def status():
    out = subprocess.run([refrain, 'status', mnt, '--json'], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def ask(*words, code=0):
    done = subprocess.run([refrain, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != code:
        wrong(words, 'ends with', done.returncode, done.stdout)
    return done.stdout.decode()


def wait_for(seconds, what, true):
    start = time.monotonic()
    while not true():
        if time.monotonic() - start > seconds * patience:
            wrong(what, 'not after', seconds, 's')
        time.sleep(0.02)
    return time.monotonic() - start


def prepare():
    for i in range(FILES):
        put('d%d/f%d' % (i % 2, i), 1, SMALL)
    put('big', 1, BIG)
    put('big too', 1, BIG)


def name_of(i):
    return 'd%d/f%d' % (i % 2, i)


# -- The parts ----------------------------------------------------------------


def refresh():
    """Check that changes show only after a refresh, but then all of them."""
    for i in range(FILES):
        expect(name_of(i), 1, SMALL)
    wait_for(10, 'publication', lambda: status()['entries'] == FILES)
    inodes = [inode(name_of(i)) for i in range(FILES)]
    for i in range(1000):
        if os.path.exists('%s/d%d/none%d' % (mnt, i % 2, i)):
            wrong('a name that is not')
    change(name_of(0), 2, SMALL)
    put(name_of(1), 2, SMALL)
    put(name_of(2), 2, SMALL // 2)
    os.unlink(os.path.join(src, name_of(3)))
    os.unlink(os.path.join(src, name_of(5)))
    os.mkdir(os.path.join(src, name_of(5)))
    put('d0/added', 2, SMALL)
    put('d0/none0', 2, SMALL)
    put('d2/deep/added', 2, SMALL)
    for turn in range(2):
        for i in range(FILES):
            expect(name_of(i), 1, SMALL)
            if inode(name_of(i)) != inodes[i]:
                wrong('another inode for the same version')
        expect_errno('d0/added', errno.ENOENT)
        expect_errno('d0/none0', errno.ENOENT)
        expect_errno('d2/deep/added', errno.ENOENT)
        if set(os.listdir(mnt)) != {'d0', 'd1', 'big', 'big too'}:
            wrong('the root shows', os.listdir(mnt))
        if turn == 0:
            drop()
    now = status()
    for counter, most in ('origin_stats', 1), ('origin_lists', 3), (
            'invalidated', 0), ('stale_reads', 0):
        if now[counter] > most:
            wrong(counter, now[counter], 'before the refresh')
    # Refresh one file only, then all.
    ask('refresh', mnt, name_of(1))
    expect(name_of(1), 2, SMALL)
    expect('d1/f7', 1, SMALL)
    said = ask('refresh', mnt)
    expect(name_of(0), 2, SMALL)
    expect(name_of(2), 2, SMALL // 2)
    expect_errno(name_of(3), errno.ENOENT)
    expect_errno(name_of(5), errno.EISDIR)
    expect('d0/added', 2, SMALL)
    expect('d0/none0', 2, SMALL)
    expect('d2/deep/added', 2, SMALL)
    if 'f3' in os.listdir(mnt + '/d1') or 'd2' not in os.listdir(mnt):
        wrong('directories are as they were')
    for i in range(FILES):
        if i not in (3, 5) and (inode(name_of(i)) == inodes[i]) == (i < 3):
            wrong(name_of(i), 'has the wrong inode')
    now = status()
    if now['invalidated'] != 5:
        wrong('invalidated', now['invalidated'], 'of 5 versions that ceased')
    print('unseen until the refresh, which said:', said.strip())


def other_size():
    """Change the size: reads fail with ESTALE until the new version has its own
    inode."""
    failures = 0

    def seen(name):
        nonlocal failures
        code = get_errno(name)
        if code not in (0, errno.ESTALE, errno.ENOENT):
            wrong('a stale file ends with', errno.errorcode[code])
        failures += code == errno.ESTALE
        return code in (0, errno.ENOENT)
    for i in range(3, 5):
        expect_errno(name_of(i), errno.ESTALE)
        wait_for(5, 'the new version', lambda i=i: seen(name_of(i)))
    return failures


def miss():
    """Check that a miss on a file that has changed but was not read gives the
    new version."""
    start = status()
    for i in range(3):
        change(name_of(i), 2, SMALL)
    put(name_of(3), 2, SMALL // 2)
    os.unlink(os.path.join(src, name_of(4)))
    old = [inode(name_of(i)) for i in range(5)]
    for i in range(3):
        expect(name_of(i), 2, SMALL)
    failures = other_size()
    expect(name_of(3), 2, SMALL // 2)
    for i in range(4):
        if inode(name_of(i)) == old[i]:
            wrong(name_of(i), 'has the inode of the old version')
    expect_errno(name_of(4), errno.ENOENT)
    drop()
    for i in range(FILES):
        if i != 4:
            expect(name_of(i), 2 if i < 4 else 1,
                   SMALL // 2 if i == 3 else SMALL)
    stale = status()['stale_reads'] - start['stale_reads']
    if stale < 5:
        wrong('stale_reads', stale)
    print('5 misses on changed files: 3 read the new version, 2 failed with '
          'ESTALE,', failures, 'times more before the new version was there')


def descriptor():
    """Check that an open file gives bytes of one version, or an error."""
    said = []
    # The kernel reads the first 64 KiB ahead; the rest are misses, because the
    # file has chunks.
    for name, flags in ('big', 0), ('big too', os.O_DIRECT):
        fd = os.open(os.path.join(mnt, name), os.O_RDONLY | flags)
        buf = mmap.mmap(-1, 65536)
        want = content(1, BIG)
        old = stale = 0
        for at in range(0, BIG, 65536):
            if at == BIG // 4:
                put(name, 2, BIG)
                ask('refresh', mnt)
                expect(name, 2, BIG)
            try:
                n = os.preadv(fd, [buf], at)
            except OSError as e:
                if e.errno != errno.ESTALE or at < BIG // 4:
                    wrong('reading on ends with', e)
                stale += 1
                continue
            if n < 65536 and at < BIG // 4:
                wrong('a read ends after', n)
            stale += n < 65536  # reading the rest would fail
            if buf[:n] != want[at:at + n]:
                wrong(name, 'is of another version at', at)
            old += 1
        if os.fstat(fd).st_size != BIG:
            wrong(name, 'has now', os.fstat(fd).st_size, 'bytes')
        os.close(fd)
        expect(name, 2, BIG)
        said.append('%s: %d old blocks, %d stale' % (name, old, stale))
    print('; '.join(said))


def race():
    """Let versions change while they are read."""
    name, stop, seen, stale = 'd0/racing', threading.Event(), set(), [0]
    mixtures = []

    def read_on():
        while not stop.is_set():
            try:
                got = get(name)
            except FileNotFoundError:
                continue
            except OSError as e:
                if e.errno != errno.ESTALE:
                    mixtures.append(str(e))
                stale[0] += 1
                continue
            version = int(got[8:15])
            if got != content(version, 700000 + version):
                mixtures.append('%d bytes of %d and others' %
                                (len(got), version))
            seen.add(version)

    put(name, 1, 700001)
    ask('refresh', mnt)
    readers = [threading.Thread(target=read_on) for _ in range(4)]
    for r in readers:
        r.start()
    end = time.monotonic() + 1.5
    version = 1
    # On a busy machine, few versions are seen in that time.
    while time.monotonic() < end or (
            len(seen) < 3 and time.monotonic() < end + 20 * patience):
        version += 1
        put(name, version, 700000 + version)
        if version % 5 == 0:
            ask('refresh', mnt)
        time.sleep(0.01 * (1 + version % 12))
    ask('refresh', mnt)
    expect(name, version, 700000 + version)
    stop.set()
    for r in readers:
        r.join()
    if mixtures:
        wrong(len(mixtures), 'wrong, the first:', mixtures[0])
    if len(seen) < 3:
        wrong('only', len(seen), 'versions were seen')
    print('%d versions written, %d of them seen, %d reads stale, no mixture' %
          (version, len(seen), stale[0]))


def all_new(turn):
    """Check that a new version, a new name and a deleted name show in every way
    in which a program can look."""
    gone = name_of(turn + 2)
    return get(name_of(0)) == content(turn, SMALL) and (
        get_errno('d0/new%d' % turn) == 0 and
        get_errno(gone) == errno.ENOENT and
        'new%d' % turn in os.listdir(mnt + '/d0') and
        'top%d' % turn in os.listdir(mnt) and
        os.path.basename(gone) not in os.listdir(mnt + '/d0') +
        os.listdir(mnt + '/d1'))


def revalidate():
    """Check that changes show within N + 1 s, with at most one stat of each
    item in N s."""
    period = 1
    for i in range(FILES):
        expect(name_of(i), 1, SMALL)
    before, start = status()['origin_stats'], time.monotonic()
    while time.monotonic() < start + 2 * period:
        for i in range(FILES):
            expect(name_of(i), 1, SMALL)
        os.listdir(mnt + '/d0')
    elapsed = time.monotonic() - start
    stats = status()['origin_stats'] - before
    items = FILES + 3
    if stats > items * (elapsed / period + 1) or stats < FILES:
        wrong(stats, 'stats of', items, 'items in', elapsed, 's')
    longest = 0
    for turn in range(2, 5):
        # The worst time for the kernel's last question is just before the
        # change.
        expect(name_of(0), turn - 1, SMALL)
        expect_errno('d0/new%d' % turn, errno.ENOENT)
        put(name_of(0), turn, SMALL)
        put('d0/new%d' % turn, turn, SMALL)
        put('top%d' % turn, turn, SMALL)
        os.unlink(os.path.join(src, name_of(turn + 2)))
        time.sleep(period * 0.7 if turn > 2 else 0)
        drop()
        took = wait_for(period + 1, 'a change', lambda turn=turn: all_new(turn))
        took += period * 0.7 if turn > 2 else 0
        longest = max(longest, took)
        if took > (period + 1) * patience:
            wrong('a change was seen after', took, 's')
    print('%d stats of %d items in %.1f s; changes seen after at most %.1f s' %
          (stats, items, elapsed, longest))


def unreachable():
    """Check that an origin that does not answer does not count as one without
    files."""
    for i in range(FILES - 1):
        expect(name_of(i), 1, SMALL)
    wait_for(10, 'publication', lambda: status()['entries'] == FILES - 1)
    ask('fault', mnt, 'error=1,meta=1')
    drop()
    said = ask('refresh', mnt, code=1)
    for _ in range(2):
        if len(os.listdir(mnt + '/d0')) != FILES // 2:
            wrong('names went')
        for i in range(FILES - 1):
            expect(name_of(i), 1, SMALL)
        drop()
    start = time.monotonic()
    expect_errno(name_of(FILES - 1), errno.EIO)
    took = time.monotonic() - start
    if took > 4 * patience:
        wrong('the error came after', took, 's')
    now = status()
    if now['invalidated'] or now['entries'] != FILES - 1:
        wrong('entries went')
    ask('fault', mnt, '')
    ask('refresh', mnt)
    expect(name_of(FILES - 1), 1, SMALL)
    print('cached files were served, the other failed after %.1f s; '
          'the refresh said: %s' % (took, said.strip().splitlines()[-1]))


globals()[part]()

# SPDX-License-Identifier: MIT
"""odd_keys.py PORT FILES DIRS KEYS SEED: puts random keys into the bucket "odd"
of the stand-in.

Writes the paths of the files and of the directories that a mount is to show,
sorted bytewise, and prints how many keys it is to hide.
"""
import http.client
import random
import sys
import urllib.parse

ALPHABETS = ('abc', '0123456789', 'ABCxyz_-.~', ' %+&=\'"#?;:@!$,()[]{}|\\^`<>*',
             'äöé漢字😀ñ\u0301', '\t\x01\x7f', 'aaaaaaaaab')


def make_part(rng):
    letters = rng.choice(ALPHABETS) + rng.choice(ALPHABETS)
    n = rng.choice((1, 2, 3, 8, 20, 60))
    return ''.join(rng.choice(letters) for _ in range(n))


def make_key(rng, dirs):
    r = rng.random()
    if r < 0.3:
        key = make_part(rng)
    elif r < 0.8:
        key = rng.choice(dirs) + '/' + make_part(rng)
    else:
        key = '/'.join(make_part(rng) for _ in range(rng.randint(2, 6)))
    # Some keys cannot be paths, and some are marks of directories.
    odd = rng.randrange(100)
    if odd < 2:
        key += '/'
    elif odd < 4:
        key = key.replace('/', '//', 1)
    elif odd == 4:
        key = '../' + key
    elif odd == 5:
        key += '/.'
    elif odd == 6:
        key = 'x' * 256 + '/' + key
    return key


def make_keys(n, seed):
    rng = random.Random(seed)
    dirs = [make_part(rng) for _ in range(30)]
    keys = set()
    while len(keys) < n:
        key = make_key(rng, dirs)
        if len(key.encode()) <= 1000:
            keys.add(key)
    return keys


def as_mounted(keys):
    """Return the files, the directories, and the number of keys that are
    neither."""
    files, dirs, hidden = set(), set(), 0
    for key in keys:
        path = key.encode()
        marks = path.endswith(b'/')
        parts = (path[:-1] if marks else path).split(b'/')
        if any(p in (b'', b'.', b'..') or len(p) > 255 for p in parts):
            hidden += 1
            continue
        for i in range(1, len(parts) + marks):
            dirs.add(b'/'.join(parts[:i]))
        if not marks:
            files.add(path)
    return files - dirs, dirs, hidden


def put_all(port, keys):
    server = http.client.HTTPConnection('127.0.0.1', port)
    for key in keys:
        server.request('PUT', '/odd/' + urllib.parse.quote(key, safe='/~'),
                       body=b'body')
        server.getresponse().read()


def write_paths(to, paths):
    with open(to, 'wb') as out:
        out.write(b''.join(p + b'\0' for p in sorted(paths)))


def main():
    port, to_files, to_dirs, n, seed = sys.argv[1:]
    keys = make_keys(int(n), int(seed))
    files, dirs, hidden = as_mounted(keys)
    put_all(int(port), keys)
    write_paths(to_files, files)
    write_paths(to_dirs, dirs)
    print(hidden)


if __name__ == '__main__':
    main()

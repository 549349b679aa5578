# SPDX-License-Identifier: MIT
"""loader.py mmap|folder DIR SUMS: reads an image folder as trainers do: a
class is a directory, an example a file in it. `mmap` maps each file once.
`folder` runs three epochs with two worker processes, by torch's DataLoader if
it is installed. Exits with 1 if the sum of an example differs from SUMS.
"""
import hashlib
import mmap
import multiprocessing
import os
import random
import sys

try:
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    DataLoader, Dataset = None, object

how, top, sums = sys.argv[1:]


class Folder(Dataset):
    def __init__(self, top):
        self.paths = []
        for here, dirs, names in os.walk(top):
            dirs.sort()
            self.paths += [os.path.join(here, n) for n in sorted(names)
                           if not os.path.islink(os.path.join(here, n))]
        self.top = top

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], 'rb') as f:
            return i, hashlib.sha256(f.read()).hexdigest()


def mapped(path):
    with open(path, 'rb') as f:
        if os.fstat(f.fileno()).st_size == 0:
            return b''
        with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return m[:]


def epochs(folder):
    if DataLoader:
        loader = DataLoader(folder, batch_size=None, shuffle=True,
                            num_workers=2)
        for _ in range(3):
            yield list(loader)
        return
    for epoch in range(3):
        order = list(range(len(folder)))
        random.Random(epoch).shuffle(order)
        with multiprocessing.Pool(2) as pool:
            yield list(pool.imap(folder.__getitem__, order, 4))


with open(sums, encoding='utf-8') as f:
    want = {os.path.join(top, line[66:-1]): line[:64] for line in f}
folder = Folder(top)
wrong = set(folder.paths) != set(want)
if how == 'mmap':
    for path in folder.paths:
        wrong |= hashlib.sha256(mapped(path)).hexdigest() != want[path]
else:
    for epoch in epochs(folder):
        wrong |= sorted(int(i) for i, _ in epoch) != list(range(len(folder)))
        for i, digest in epoch:
            wrong |= digest != want[folder.paths[int(i)]]
sys.exit(1 if wrong else 0)

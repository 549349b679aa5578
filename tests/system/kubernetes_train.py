# SPDX-License-Identifier: MIT
"""The trainer of the example Pods: reads DIRECTORY in a new order each epoch
and checks every file, with one file open all the time. Stops after the epoch
in which the file go-on beside DIRECTORY was removed. Prints a line for each
epoch."""
import hashlib
import os
import random
import sys
import time


def read(path):
    with open(path, 'rb') as f:
        data = f.read()
        # The next epoch must be read from the daemon, and not from the kernel's
        # pages.
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return data


def main():
    top = sys.argv[1]
    with open('/train.sums') as f:
        sums = [line.rstrip('\n').split('  ', 1) for line in f]
    with open(os.path.join(top, sums[-1][1]), 'rb') as held:
        epoch = 0
        while True:
            last = not os.path.exists(os.path.join(os.path.dirname(top),
                                                   'go-on'))
            random.shuffle(sums)
            for want, path in sums:
                if hashlib.sha256(read(os.path.join(top, path))
                                  ).hexdigest() != want:
                    sys.exit(f'wrong bytes: {path}')
            held.seek(0)
            held.read(1)
            epoch += 1
            print('epoch', epoch, flush=True)
            if last:
                break
            # leave the processor to the daemon
            time.sleep(0.2)


main()

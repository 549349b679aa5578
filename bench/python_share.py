#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of Python that share their batches, or one that is alone. Their
trainers do nothing.

    python_share.py JOBS FOLDER EPOCHS [NAME=VALUE ...]

One line of JSON: images a second of the slowest, the milliseconds of processor
time for an image that was served, and the decodes of all. Each job is timed
from when all have their first batch.
"""
import json
import multiprocessing
import os
import sys
import time

import refrain


def drain(ready, out, folder, epochs, options):
    """One job: (images, seconds, processor seconds, decodes)."""
    with refrain.Loader(folder, epochs=epochs, **options) as loader:
        next(iter(loader)).release()
        images = 0
        ready.wait()
        begin, cpu = time.monotonic(), time.process_time()
        for _ in range(epochs):
            for batch in loader:
                images += len(batch)
                batch.release()
        out.put((images, time.monotonic() - begin, time.process_time() - cpu,
                 loader.stats()["decodes"]))


def jobs(n, folder, epochs, options):
    """What n of them say."""
    spawn = multiprocessing.get_context("spawn")
    ready, out = spawn.Barrier(n), spawn.Queue()
    team = [spawn.Process(target=drain, args=(ready, out, folder, epochs,
                                              options)) for _ in range(n)]
    for member in team:
        member.start()
    said = [out.get() for _ in team]
    for member in team:
        member.join()
    return said


def main():
    n, folder, epochs = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    options = dict(word.split("=", 1) for word in sys.argv[4:])
    if n > 1:
        options.update(share="bench-%d" % os.getpid(), share_jobs=n)
    said = jobs(n, folder, epochs, options)
    images = sum(s[0] for s in said)
    print(json.dumps({
        "jobs": n, "slowest": min(s[0] / s[1] for s in said),
        "cpu_ms": sum(s[2] for s in said) * 1e3 / images,
        "decodes": sum(s[3] for s in said)}))


if __name__ == "__main__":
    main()

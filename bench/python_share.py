#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of Python that share their batches, beside one that is alone. Their
trainers do nothing.

    python_share.py JOBS FOLDER EPOCHS [NAME=VALUE ...]

One line of JSON: images a second of the one alone and of the slowest that
shares, their ratio, and the milliseconds of processor time for an image that
was served. Each is timed from when all have their first batch.
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
    alone = jobs(1, folder, epochs, options)[0]
    shared = jobs(n, folder, epochs, dict(
        options, share="bench-%d" % os.getpid(), share_jobs=n))
    rate, slowest = alone[0] / alone[1], min(s[0] / s[1] for s in shared)
    images = sum(s[0] for s in shared)
    print(json.dumps({
        "jobs": n, "alone": rate, "slowest": slowest,
        "ratio": slowest / rate, "cpu_ms_alone": alone[2] * 1e3 / alone[0],
        "cpu_ms": sum(s[2] for s in shared) * 1e3 / images,
        "decodes_alone": alone[3], "decodes": sum(s[3] for s in shared)}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two loaders at once, in threads of this process or in processes of their own.

    python_two.py threads|processes FOLDER EPOCHS [NAME=VALUE ...]

One line of JSON: images a second of both together. A loader is timed from when
both have begun and it has used what it made while it waited for the other.
"""
import json
import multiprocessing
import queue
import sys
import threading
import time

import refrain

AHEAD = 5       # batches_ahead, and one that is being made

def drain(ready, out, folder, epochs, options):
    """One loader's epochs: images a second."""
    with refrain.Loader(folder, epochs=epochs, **options) as loader:
        steps = iter(loader)
        next(steps).release()
        images = 0
        ready.wait()
        for _ in range(AHEAD):
            next(steps).release()
        begin = time.monotonic()
        for _ in range(epochs):
            for batch in loader:
                images += len(batch)
                batch.release()
        out.put(images / (time.monotonic() - begin))


def main():
    how, folder, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    options = dict(word.split("=", 1) for word in sys.argv[4:])
    if how == "threads":
        make, ready, out = threading.Thread, threading.Barrier(2), queue.Queue()
    else:
        spawn = multiprocessing.get_context("spawn")
        make, ready, out = spawn.Process, spawn.Barrier(2), spawn.Queue()
    team = [make(target=drain, args=(ready, out, folder, epochs,
                                     dict(options, seed=n)))
            for n in range(2)]
    for member in team:
        member.start()
    rates = [out.get() for _ in team]
    for member in team:
        member.join()
    print(json.dumps({"how": how, "images_per_s": sum(rates)}))


if __name__ == "__main__":
    main()

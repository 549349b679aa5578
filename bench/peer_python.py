#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time the Python package: batches taken by a trainer that does nothing.

    peer_python.py FOLDER EPOCHS ECHO [NAME=VALUE ...]

EPOCHS is 2 or more.

One line of JSON: batches a second, and processor time of an image in all
threads of the process from the second epoch on; the first one fills the memory.
"""
import json
import sys
import time

import peer_usage
import refrain


def main():
    folder, epochs, echo = sys.argv[1:4]
    options = dict(word.split("=") for word in sys.argv[4:])
    images = steps = 0
    with refrain.Loader(folder, epochs=epochs, echo=echo,
                        **options) as loader:
        begin = time.monotonic()
        for epoch in range(int(epochs)):
            if epoch == 1:
                warm, cpu = images, peer_usage.cpu_s()
            for batch in loader:
                images += len(batch)
                steps += 1
                batch.release()     # before asking for the next batch, as the command does
        wall = time.monotonic() - begin
        cpu = peer_usage.cpu_s() - cpu
    print(json.dumps({
        "what": "python", "echo": echo, "images": images, "steps": steps,
        "cpu_ms": cpu * 1e3 / (images - warm), "steps_per_s": steps / wall,
        "peak_bytes": peer_usage.peak_bytes()}))


main()

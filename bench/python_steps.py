#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trainer in Python that only waits: steps of so many milliseconds on the
batches of refrain.Loader, as `refrain load --step-ms` has them.

    python_steps.py DATASET STEP_MS LOG [NAME=VALUE ...]

Writes LOG as `refrain load --step-log` does, and prints the statistics of the
loader as one line of JSON.
"""
import json
import sys
import time

import refrain


def main():
    dataset, step_ms, log = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    options = dict(word.split("=", 1) for word in sys.argv[4:])
    changes = options.pop("changes", None)
    end = time.monotonic()
    with refrain.Loader(dataset, **options) as loader, \
            open(log, "w", encoding="ascii") as steps:
        for _ in range(int(options["epochs"])):
            asked = time.monotonic()
            for batch in loader:
                now = time.monotonic()
                steps.write("%d\t%d\t%d\t%d\t%d\t%s\n" % (
                    batch.step, now * 1e6, (now - asked) * 1e6, batch.fresh,
                    batch.ends_epoch, "-" if batch.ended_epoch is None
                    else batch.ended_epoch))
                # An accelerator's step begins when its batch comes.
                end = max(end + now - asked + step_ms / 1e3, now)
                time.sleep(max(end - time.monotonic(), 0))
                batch.release()
                asked = time.monotonic()
        if changes:
            with open(changes, "w", encoding="ascii") as f:
                f.write(loader.echo_log())
        print(json.dumps(loader.stats()))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a command that prints one line of JSON with `served`, and print the line
with `cpu_ms` added: processor time of an image, in milliseconds.

    with_cpu.py COMMAND [ARGUMENT ...]
"""
import json
import resource
import subprocess
import sys


def main():
    out = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE,
                         check=True).stdout
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = json.loads(out)
    cpu_s = usage.ru_utime + usage.ru_stime
    print(json.dumps(dict(row, cpu_ms=cpu_s * 1e3 / row["served"])))


main()

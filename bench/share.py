# SPDX-License-Identifier: MIT
"""The runs of bench/share.sh, and its tables."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

refrain, data, mnt, tier, seconds, jobs, out = sys.argv[1:]
seconds = float(seconds)
options = ["--batch", "64", "--size", "224", "--seed", "1", "--threads",
           str(os.cpu_count()), "--json", "--epochs", "1000000"]


def load(where, *more):
    return subprocess.Popen([refrain, "load", where, *options, *more],
                            stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rss(pid):
    """Memory that is its own, and memory that it shares, in MiB."""
    with open(f"/proc/{pid}/smaps_rollup") as f:
        rows = dict(line.split()[:2] for line in f if line.count(":") == 1)
    return int(rows["Pss:"]) / 1024


def run(n, shared, steps, *more, where=data):
    """n jobs of so many steps each."""
    if shared:
        more += ("--share", "bench", "--share-jobs", str(n))
    began, cpu = time.monotonic(), processor_time()
    ps = [load(where, "--steps", str(steps), *more) for _ in range(n)]
    memory = 0
    while all(p.poll() is None for p in ps):
        time.sleep(0.25)
        try:
            memory = max(memory, sum(rss(p.pid) for p in ps))
        except (OSError, KeyError):
            pass
    runs = [json.loads(p.communicate()[0]) for p in ps]
    assert all(p.returncode == 0 for p in ps)
    rates = sorted(r["images_per_s"] for r in runs)
    return {"jobs": n, "shared": shared, "slowest": rates[0],
            "sum": sum(rates), "decodes": sum(r["decodes"] for r in runs),
            "served": sum(r["served"] for r in runs),
            "cpu_s": processor_time() - cpu, "memory_mib": memory,
            "wall_s": time.monotonic() - began}


def row(r, alone):
    print(f"| {r['jobs']} | {'shared' if r['shared'] else 'apart'} "
          f"| {r['slowest']:.0f} | {r['slowest'] / alone:.2f} "
          f"| {r['sum']:.0f} | {1000 * r['cpu_s'] / r['served']:.2f} "
          f"| {r['decodes'] / r['served']:.3f} | {r['memory_mib']:.0f} |",
          flush=True)


HEAD = """
| jobs | | images/s of the slowest | of one alone | of all | CPU ms an image | decodes an image | MiB |
|---|---|---|---|---|---|---|---|"""
results = []
for what, more in ("--no-hash", ["--no-hash"]), ("reads every pixel", []):
    print(f"\n{what}:\n{HEAD}")
    alone = run(1, False, 20, *more)["slowest"]
    steps = max(20, int(alone * seconds / 64))
    alone = run(1, False, steps, *more)["slowest"]
    for n in [int(j) for j in jobs.split()]:
        for shared in False, True:
            r = run(n, shared, steps if shared or n == 1
                    else max(10, 2 * steps // n), *more)
            r["what"], r["alone"] = what, alone
            results.append(r)
            row(r, alone)

# Hand-over: what a trainer waits for a batch that is ready.
waits = []
for _ in range(5):
    with tempfile.NamedTemporaryFile("r") as log:
        p = load(data, "--share", "bench", "--steps", "400", "--step-ms", "8",
                 "--batch", "2", "--no-hash", "--step-log", log.name)
        p.communicate()
        us = sorted(int(line.split("\t")[2]) for line in list(log)[50:])
        waits.append(us[len(us) * 99 // 100])
print(f"\nhand-over: p99 of 5 runs: {waits} us, median {sorted(waits)[2]} us")

# An idle job: one of two waits for the other, which is stopped.
ps = [load(data, "--share", "bench", "--share-jobs", "3", "--timeout", "0",
           "--no-hash") for _ in range(2)]
time.sleep(1)


def busy_s(pid):
    """Of all threads that live; a tick of utime is too coarse."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


before = [busy_s(p.pid) for p in ps]
time.sleep(10)
idle = [(busy_s(p.pid) - b) * 10 for p, b in zip(ps, before)]
for p in ps:
    p.kill()
    p.communicate()
print(f"idle: {[round(i, 3) for i in idle]} % of a processor")

# Origin bytes of a mount with no room to keep anything.
for n, shared in (1, False), (8, True):
    if subprocess.run([refrain, "mount", data, mnt, "--cache",
                       f"{tier}{n}:1M"]).returncode:
        break
    r = run(n, shared, 30, "--no-hash", where=mnt)
    status = json.loads(subprocess.run(
        [refrain, "status", mnt, "--json"], stdout=subprocess.PIPE).stdout)
    r["what"], r["origin_bytes"] = "mount", status["origin_bytes"]
    results.append(r)
    print(f"{n} jobs on a mount: {status['origin_bytes']} bytes of the "
          f"origin, {r['decodes']} decodes", flush=True)
    subprocess.run([refrain, "umount", mnt])
with open(out, "w") as f:
    json.dump({"runs": results, "handover_p99_us": waits, "idle_pct": idle}, f)

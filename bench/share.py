# SPDX-License-Identifier: MIT
"""The runs of bench/share.sh, and its tables."""
import json
import os
import resource
import signal
import statistics
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


def median_of(runs):
    """The run with the median sum."""
    return sorted(runs, key=lambda r: r["sum"])[len(runs) // 2]


HEAD = """
| jobs | | images/s of the slowest | of one alone | of all | CPU ms an image | decodes an image | MiB |
|---|---|---|---|---|---|---|---|"""
results = []
for what, more in ("--no-hash", ["--no-hash"]), ("reads every pixel", []):
    print(f"\n{what}:\n{HEAD}")
    alone = run(1, False, 20, *more)["slowest"]
    steps = max(20, int(alone * seconds / 64))
    # Other programs on the machine disturb runs, so there are three, of which
    # the middle one counts, and a job alone before each.
    lone = [run(1, False, steps, *more)["slowest"] for _ in range(3)]
    for n in [int(j) for j in jobs.split()]:
        for shared in False, True:
            runs = []
            for _ in range(3 if shared else 1):
                lone.append(run(1, False, steps, *more)["slowest"])
                runs.append(run(n, shared, steps if shared or n == 1
                                else max(10, 2 * steps // n), *more))
            r = median_of(runs)
            r["what"], r["alone"] = what, statistics.median(lone[-3:])
            results.append(r)
            row(r, r["alone"])


def view():
    out = subprocess.run([refrain, "share", "--json"], text=True,
                         stdout=subprocess.PIPE).stdout
    shares = json.loads(out or "[]")
    return shares[0] if shares else {"jobs": [], "step": 0, "host_pid": 0}


def rate_of_share():
    """Images a second that each job of the share gets."""
    first, began = view()["step"], time.monotonic()
    time.sleep(seconds)
    return (view()["step"] - first) * 64 / (time.monotonic() - began)


def with_slow_job(n, *slow, stop=False):
    """The others' rate beside one job that goes on alone, by that without."""
    common = ["--share", "bench", "--share-jobs", str(n), "--no-hash",
              "--share-slow", "solo", "--share-grace-s", "1"]
    ps = [load(data, *common) for _ in range(n - 1)]
    while len(view()["jobs"]) < n - 1:
        time.sleep(0.05)
    last = load(data, *common, *slow)  # this job is not the host
    while view()["step"] < 10:
        time.sleep(0.05)
    before = rate_of_share() if stop else 0
    if stop:
        last.send_signal(signal.SIGSTOP)
    until = time.monotonic() + 30
    while not any(j["solo"] for j in view()["jobs"]):
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    time.sleep(seconds)  # time for the first batches of its own engine
    after = rate_of_share()
    if not stop:
        last.kill()
        last.wait()
        before = rate_of_share()
    for p in (*ps, last):
        p.kill()
        p.communicate()
    return after / before


if "8" in jobs.split():
    stopped = statistics.median(
        with_slow_job(8, stop=True) for _ in range(3))
    print(f"\none of 8 is stopped, with solo: the others at {stopped:.2f}",
          flush=True)
    step_ms = 64000 / results[0]["alone"]
    slow = with_slow_job(8, "--step-ms", str(round(10 * step_ms)))
    print(f"one of 8 is ten times slower, with solo: the others at "
          f"{slow:.2f}", flush=True)
else:
    stopped = slow = None

# Hand-over: the time that a trainer waits for a batch that is ready.
waits = []
for _ in range(5):
    with tempfile.NamedTemporaryFile("r") as log:
        p = load(data, "--share", "bench", "--steps", "400", "--step-ms", "8",
                 "--batch", "2", "--no-hash", "--step-log", log.name)
        p.communicate()
        us = sorted(int(line.split("\t")[2]) for line in list(log)[50:])
        waits.append(us[len(us) * 99 // 100])
print(f"\nhand-over: p99 of 5 runs: {waits} us, median {sorted(waits)[2]} us")

# An idle job: one of two jobs waits for the other, which is stopped.
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

# Bytes read from the origin by a mount whose cache has no room.
print("\n| jobs on a mount | | bytes of the origin | decodes |\n|---|---|---|---|")
for n in [int(j) for j in jobs.split()]:
    for shared in False, True:
        if subprocess.run([refrain, "mount", data, mnt, "--cache",
                           f"{tier}{n}{shared}:1M"]).returncode:
            break
        r = run(n, shared, 10, "--no-hash", where=mnt)
        status = json.loads(subprocess.run(
            [refrain, "status", mnt, "--json"], stdout=subprocess.PIPE).stdout)
        r["what"], r["origin_bytes"] = "mount", status["origin_bytes"]
        results.append(r)
        print(f"| {n} | {'shared' if shared else 'apart'} "
              f"| {status['origin_bytes']} | {r['decodes']} |", flush=True)
        subprocess.run([refrain, "umount", mnt])
with open(out, "w") as f:
    json.dump({"runs": results, "handover_p99_us": waits, "idle_pct": idle,
               "stopped": stopped, "ten_times_slower": slow}, f)

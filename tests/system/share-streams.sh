#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Jobs that share batches: the stream of each, one decode for all, hosts and
# others that are killed at random moments, a job that is stopped, what is
# refused, and what is left behind. REFRAIN_SEED repeats the moments;
# REFRAIN_KILLS=100 makes so many of them.
set -eu
name=share
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

kills=${REFRAIN_KILLS:-3}
data=$work/data
"$refrain" make-dataset --classes 3 --images 240 --size 96x72 "$data" \
	>/dev/null

timeout $(((60 + kills * 5) * patience)) python3 - "$refrain" "$data" \
	"${REFRAIN_SEED:-$$}" "$patience" "$kills" <<'PY' || fail "see above"
import json, os, random, signal, socket, subprocess, sys, threading, time

refrain, data = sys.argv[1:3]
seed, patience, kills = (int(a) for a in sys.argv[3:])
print(f"REFRAIN_SEED={seed}")
rnd = random.Random(seed)
options = ["--size", "32", "--seed", "5", "--json", "--threads", "2"]


def start(*more, command="load"):
    return subprocess.Popen([refrain, command, data, *options, *more],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def end(p):
    out, err = p.communicate(timeout=30 * patience)
    assert p.returncode == 0, f"{p.args}: {err}"
    return json.loads(out)


def refused(why, *more):
    p = start(*more)
    out, err = p.communicate(timeout=30 * patience)
    assert p.returncode != 0 and why in err, f"{why}: {err}"


def stream(run):
    return run["stream_hash"], run["pixel_hash"], run["steps"]


def same(what, runs, alone):
    for run in runs:
        assert stream(run) == stream(alone), f"{what}: {run}"


def share(*more):
    out = subprocess.run([refrain, "share", "--json", *more], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def wait_for(what, condition):
    until = time.monotonic() + 20 * patience
    while not (result := condition()):
        assert time.monotonic() < until, what
        time.sleep(0.002)
    return result


def view():
    all = share()
    return all[0] if all else {"begun": False, "step": 0, "jobs": []}


def view_from(step):
    v = view()
    return v if v["begun"] and v["step"] >= step else None


def stop(pid):
    """Until its last thread has stopped, it still answers."""
    os.kill(pid, signal.SIGSTOP)
    def all_stopped():
        for t in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{t}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True
    wait_for("it stops", all_stopped)


# A command of its own hosts: nobody else decodes, and each example once.
run = ["--batch", "16", "--epochs", "2", "--echo", "2.5"]
alone = end(start(*run))
host = subprocess.Popen(
    [refrain, "serve", data, "--share", "s", "--share-jobs", "3", *run,
     *options[:4]], stdout=subprocess.PIPE, text=True)
assert "waits" in host.stdout.readline()
refused("seed differs", *run, "--share", "s", "--seed", "6")
refused("batch differs", *run, "--share", "s", "--batch", "32")
refused("'/'", *run, "--share", "a/b")
refused("64", *run, "--share", "x" * 255)
refused("evaluation", "--batch", "16", "--share", "s", "--augment", "eval")
jobs = [start(*run, "--share", "s") for _ in range(3)]
runs = [end(j) for j in jobs]
same("served", runs, alone)
assert [r["decodes"] for r in runs] == [0, 0, 0], runs
assert runs[0]["share"]["host_pid"] == host.pid
assert host.wait(10 * patience) == 0
assert "480 examples decoded" in host.stdout.read()
assert share() == []

# The first job hosts: slices of 32, beside alone with what they map to.
slices = [start("--batch", str(b), "--epochs", "2", "--echo", "2.5", "--share",
                "s", "--share-jobs", "3", "--share-batch", "32")
          for b in (8, 16, 32)]
runs = [end(p) for p in slices]
for b, r in zip((8, 16, 32), runs):
    same(f"slices of {b}", [r], end(start(
        "--batch", str(b), "--epochs", "2", "--echo", "2.5", "--window",
        str(1024 - 32 + b), "--min-lag", str(32 // b))))
assert sum(r["decodes"] for r in runs) == 480, runs

def next_batch(host):
    """Whether there is another host than `host`, and it has a batch."""
    v = view()
    return v["begun"] and v["host_pid"] != host and v["slots_held"] > 0


def time_takeover(host, slots):
    """How long there was no batch after the kill, and how long that may be
    where nothing else runs: a second, and what a window and all slots take at
    the rate of a run without a share."""
    begin = time.monotonic()
    wait_for("the next host", lambda: next_batch(host) or not share())
    took = time.monotonic() - begin
    bar = 1 + (1024 + slots * 16) / alone["images_per_s"]
    takeovers.append((took, bar))


def killed(victim, at, step_ms):
    """Jobs of which one was killed at step `at` or later, and the view then;
    None if the run was over before that."""
    jobs = [start(*run, "--step-ms", str(step_ms), "--share", "s",
                  "--share-jobs", "3") for _ in range(3)]
    now = wait_for("a step", lambda: view_from(at) or any(
        j.poll() is not None for j in jobs))
    pid = None
    if now is not True:
        pids = [j["pid"] for j in now["jobs"] if j["pid"] != now["host_pid"]]
        pid = now["host_pid"] if victim == "host" else pids[0]
        os.kill(pid, signal.SIGKILL)
        if victim == "host":
            time_takeover(pid, now["slots"])
    runs = [end(j) for j in jobs if j.pid != pid]
    gone = [j for j in jobs if j.pid == pid]
    [j.communicate() for j in gone]
    over = [j.returncode for j in gone] != [-signal.SIGKILL]
    if victim == "host" and not any(r["share"]["takeovers"] for r in runs):
        over = True
    return None if over else (runs, now)


# Kills: of a job and of the host. On a busy machine a run may be over before it
# is seen, and is then repeated with slower steps.
run = ["--batch", "16", "--epochs", "6", "--echo", "2.5"]
alone = end(start(*run))
takeovers = []
for kill in range(kills):
    victim = "job" if kill % 2 else "host"
    at = rnd.randrange(2, 100)
    tries = (killed(victim, at, ms) for ms in (1, 4, 16, 64))
    runs, now = next(filter(None, tries))
    assert len(runs) == 2, now
    same(f"{victim} killed at {now['step']}", runs, alone)
    assert [r["share"]["takeovers"] for r in runs] == \
        [int(victim == "host")] * 2, runs
took, bar = max(takeovers)
print(f"{len(takeovers)} takeovers: the next batch after {took:.3f} s at most, "
      f"bar {bar:.3f} s")

# A host that cannot be understood does not hide the others.
def nonsense(listener):
    with listener.accept()[0] as peer:
        peer.send(b"nonsense")
        peer.recv(1)


run_dir = os.environ["XDG_RUNTIME_DIR"] + "/refrain-share"
job = start(*run, "--share", "s")
wait_for("a step", lambda: view_from(1))
for other in ("a", "z"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{run_dir}/{other}.sock")
        listener.listen()
        thread = threading.Thread(target=nonsense, args=(listener,))
        thread.start()
        got = subprocess.run([refrain, "share", "--json"],
                             capture_output=True, text=True)
        thread.join()
    os.unlink(f"{run_dir}/{other}.sock")
    assert got.returncode == 1 and f"'{other}'" in got.stderr, got
    assert [s["name"] for s in json.loads(got.stdout)] == ["s"], got
same("seen", [end(job)], alone)

# Watched until it ends.
job = start("--batch", "16", "--share", "s", "--epochs", "20", "--steps", "120",
            "--step-ms", "20")
wait_for("a step", lambda: view_from(1))
watch = subprocess.Popen([refrain, "share", "--watch", "s"], text=True,
                         stdout=subprocess.PIPE)
hosts = (line for line in watch.stdout if f"process {job.pid} hosts" in line)
assert next(hosts) and next(hosts)
end(job)
assert watch.wait(20 * patience) == 0

# A job that is stopped is named.
run += ["--step-ms", "20", "--share", "s", "--share-jobs", "2"]
slow = start(*run)
fast = start(*run, "--timeout", "1")
wait_for("a step", lambda: view_from(2))
stop(slow.pid)
out, err = fast.communicate(timeout=30 * patience)
assert fast.returncode == 1 and f"process {slow.pid}, stopped" in err, err
os.kill(slow.pid, signal.SIGKILL)
slow.communicate()

# With solo nobody waits for it for long, and it has its stream all the same.
run = ["--batch", "16", "--epochs", "6", "--echo", "2.5", "--share", "s",
       "--share-jobs", "3"]
host = start(*run, "--step-ms", "10")
wait_for("a host", lambda: view()["jobs"])
slow = start(*run, "--share-slow", "solo", "--share-grace-s", "1")
other = start(*run, "--step-ms", "10")
wait_for("a step", lambda: view_from(5))
stop(slow.pid)
wait_for("it is parted", lambda: any(j["solo"] for j in view()["jobs"]))
os.kill(slow.pid, signal.SIGCONT)
runs = [end(p) for p in (slow, host, other)]
same("solo", runs, alone)
assert [r["share"]["parted"] > 0 for r in runs] == [True, False, False], runs

# A name that is not UTF-8.
job = start("--batch", "16", "--share", b"\xff", "--share-jobs", "2")
wait_for("the name", lambda: [s["name"] for s in share()] == ["\\xff"])
job.kill()
job.communicate()

# Only a killed host leaves its files, until the next one starts.
left = sorted(os.listdir(os.fsencode(run_dir)))
assert left == [b"\xff.lock", b"\xff.sock"], left
assert share() == []
job = start(*run, "--share", "t", "--share-jobs", "1")
wait_for("the files are gone", lambda: sorted(
    os.listdir(os.fsencode(run_dir))) == [b"t.lock", b"t.sock"])
end(job)
assert os.listdir(run_dir) == []
PY
echo PASS

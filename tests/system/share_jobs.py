# SPDX-License-Identifier: MIT
"""Starts, inspects and ends jobs that share batches."""
import json, os, signal, subprocess, sys, time

refrain, data = sys.argv[1:3]
seed, patience, kills = (int(a) for a in sys.argv[3:])
run_dir = os.environ["XDG_RUNTIME_DIR"] + "/refrain-share"
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
    """A process still answers until its last thread has stopped, so wait for
    that."""
    os.kill(pid, signal.SIGSTOP)

    def all_stopped():
        for t in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{t}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
        return True

    wait_for("it stops", all_stopped)

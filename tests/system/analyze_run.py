# SPDX-License-Identifier: MIT
"""For tests of `refrain analyze`: starts analyses and waits for their ends."""
import json, os, signal, struct, subprocess, sys

refrain, src, work, patience = *sys.argv[1:4], int(sys.argv[4])
size = sum(os.path.getsize(os.path.join(d, f))
           for d, _, files in os.walk(src) for f in files)
# Rate of the source in bytes per second: an epoch takes 2.5 s. If the programs
# of a build are slower, the source is slower, too, so that the trainer still
# waits for it. The measurement then takes longer.
slower = min(patience, 4)
rate = 0.4 * size / slower


def signals(ignored):
    """Set the handling of SIGHUP, and of SIGINT, which a shell may have set to
    be ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, ignored)


def analyze(*words, tmp=work + "/tmp", hangup=signal.SIG_DFL, shell=()):
    """Start an analysis, with a shell if `shell` is given."""
    return subprocess.Popen(
        [*shell, refrain, "analyze", "--cache", work + "/fast", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": tmp},
        preexec_fn=lambda: signals(hangup))


def end(p):
    out, err = p.communicate(timeout=150 * patience)
    return p.returncode, out, err


def loader(top):
    """Return the command of a trainer: `refrain load`, which never ends."""
    return [refrain, "load", top, "--batch", "8", "--echo", "1", "--epochs",
            "1000000", "--threads", "2", "--size", "32", "--step-ms", "10",
            "--no-hash"]


def trainer(how, source="{}"):
    """Return the command of a trainer of analyze_trainer.py."""
    return [sys.executable, os.path.dirname(__file__) + "/analyze_trainer.py",
            how, source]


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def tfrecord(size):
    length = struct.pack("<Q", size)
    crc = crc32c(length)
    crc = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
    return length + struct.pack("<I", crc) + os.urandom(size) + bytes(4)


def slow_loader(profile, shell=()):
    """Analyse a loader behind a slow source, and save the profile."""
    return analyze("--seconds", str(slower), "--fault", f"rate={rate:.0f}",
                   "--profile", profile, src, "--", *shell, *loader("{}"))


def brief(source, *command, options=(), shell=()):
    """Start an analysis of short segments, which prints its profile."""
    return analyze("--seconds", "2", "--start", "30", "--json", *options,
                   source, "--", *command, shell=shell)


def profile_of(p):
    """Return the profile that an analysis prints."""
    status, out, err = end(p)
    assert status == 0, err
    return json.loads(out)


def is_fetch(p):
    """Is fetching the bottleneck? On a busy machine the verdict may be
    undecided."""
    return p["likely"] == "fetch" and p["bottleneck"] in ("fetch", "undecided")


def refused(analyses):
    """Check pairs of an analysis and a text that its only error message must
    contain."""
    for p, why in analyses:
        status, out, err = end(p)
        said = [s for s in err.splitlines()
                if s.startswith("refrain: analyze:")]
        assert status == 1 and not out and len(said) == 1, (why, status, err)
        assert why in said[0], (why, said)
        print(said[0])


def has_a_limit(p, samples, most, unit, limit):
    """Check that the source is the limit: `limit` bytes a second."""
    assert p["source"]["samples"] == samples, p
    assert p["source"]["unit"] == unit, p
    assert p["R0"]["value"] < p["G"]["value"] < most, p
    assert is_fetch(p) and p["R0"]["value"] > 0, p
    # Check the rate in samples, with a wide margin, because other programs run
    # at the same time.
    bytes_s = p["R0"]["value"] * p["source"]["bytes"] / samples
    assert 0.3 < bytes_s / limit < 3, (bytes_s, limit)


def make_records():
    """Make a few files with many records of 4 KiB each. Return their
    directory."""
    os.mkdir(work + "/records")
    for n in range(8):
        with open(f"{work}/records/train-{n}.tfrecord", "wb") as f:
            f.write(tfrecord(4096) * 256)
    return work + "/records"


def children(p):
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        return f.read().split()

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# refrain analyze: a loader behind a slow source is analysed, its saved profile
# gives the same report again; commands that cannot be analysed are named; an
# interrupt leaves nothing behind.
set -eu
name=analyze
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires fuse python3 timeout
XDG_CACHE_HOME=$work/xdg
TMPDIR=$work/tmp
export XDG_CACHE_HOME TMPDIR
mkdir "$TMPDIR" "$work/fast"

"$refrain" make-dataset --classes 2 --images 200 --size 128x96 "$src" >/dev/null

timeout $((180 * patience)) python3 - "$refrain" "$src" "$work" "$patience" \
	<<'PY' || fail "see above"
import ctypes, json, os, signal, subprocess, sys, time, xml.dom.minidom

refrain, src, work, patience = *sys.argv[1:4], int(sys.argv[4])
profile = work + "/profile.json"


def signals(ignored):
    """A shell may have had SIGINT ignored for all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, ignored)


def analyze(*words, tmp=work + "/tmp", hangup=signal.SIG_DFL):
    return subprocess.Popen(
        [refrain, "analyze", "--cache", work + "/fast", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": tmp},
        preexec_fn=lambda: signals(hangup))


def end(p):
    out, err = p.communicate(timeout=150 * patience)
    return p.returncode, out, err


def loader(top):
    return [refrain, "load", top, "--batch", "8", "--echo", "1", "--epochs",
            "1000000", "--threads", "2", "--size", "32", "--step-ms", "10",
            "--no-hash"]


size = sum(os.path.getsize(os.path.join(d, f))
           for d, _, files in os.walk(src) for f in files)
# In bytes a second: an epoch takes 2.5 s. Where all programs are slower, the
# source is slower, too, so that the trainer still waits for it; it is measured
# for as many samples.
slower = min(patience, 4)
rate = 0.4 * size / slower

# The mount covers the source. Alone, as the namespace of the command would hold
# a copy of every other mount.
covered = f"grep -q ' {src} .* fuse.refrain ' /proc/self/mountinfo && exit 3"
status, out, err = end(analyze(src, "--", "sh", "-c", covered))
assert status == 1 and "failed with status 3" in err, err
# With {} nothing is, and each is replaced, whatever the path contains.
status, out, err = end(analyze(src, "--", "sh", "-c", f"{covered}; exit 4",
                               "{}"))
assert status == 1 and "failed with status 4" in err, err
os.mkdir(work + "/tmp/{}")
status, out, err = end(analyze(
    src, "--", "sh", "-c", 'test -d "$0" && test "$0$0" = "$1" && exit 4',
    "{}", "{}{}", tmp=work + "/tmp/{}"))
os.rmdir(work + "/tmp/{}")
assert status == 1 and "failed with status 4" in err, err

# Words that are not UTF-8, and too many to be shown.
shell = ["sh", "-c", 'shift; exec "$@"', b"\xe9", "é" * 300]
main = analyze("--seconds", str(slower), "--fault", f"rate={rate:.0f}",
               "--profile", profile, src, "--", *shell, *loader("{}"))
ran = src, "--", "touch", work + "/ran", "{}"
refused = [
    (analyze(src, "--", "true", "{}"), "ended during"),
    (analyze(src, "--", work + "/none", "{}"), "cannot run"),
    (analyze("--start", "1", src, "--", "sh", "-c", "exec sleep 60", "{}"),
     "read nothing"),
    (analyze("synthetic:files=4,size=64K", "--", "cat", "x"), "write {}"),
    (analyze("--from", src + "/none"), "cannot read"),
    (analyze(src + "/none", "--", "true"), "No such file"),
    # What would be in vain is refused before anything is measured.
    (analyze("--cached", "half", *ran), "not a valid size"),
    (analyze("--html", work + "/none/page", *ran), "cannot write"),
    (analyze("--profile", work, *ran), "cannot write"),
]
stopped = analyze(src, "--", *loader("{}"))
fetching = analyze("--fault", "rate=1K", src, "--", "sleep", "60", "{}",
                   hangup=signal.SIG_IGN)
for p, why in refused:
    status, out, err = end(p)
    assert status == 1 and why in err and not out, (why, status, err)
    assert sum(s.startswith("refrain: analyze:")
               for s in err.splitlines()) == 1, err
assert not os.path.exists(work + "/ran")


def copies(pid):
    """Mounts of analyses in the namespace of a process."""
    try:
        with open(f"/proc/{pid}/mountinfo") as f:
            return f.read().count("/refrain-analyze.")
    except OSError:
        return 0


def children(p):
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        return f.read().split()


def reads():
    """The loader of the interrupted analysis, once it has begun."""
    for pid in children(stopped):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[1:2] == [b"load"]:
                    return int(pid)
        except OSError:
            pass
    return 0


until = time.monotonic() + 20 * patience
while not (pid := reads()):
    assert time.monotonic() < until and stopped.poll() is None
    time.sleep(0.01)
# Somebody else's namespace gets copies of the mounts, and keeps them.
other = subprocess.Popen(["unshare", "-m", "sh", "-c", "echo; exec sleep 600"],
                         stdout=subprocess.PIPE)
may = other.stdout.readline()
assert not may or copies(other.pid), "no copies"
stopped.send_signal(signal.SIGINT)
status, out, err = end(stopped)
assert status == 1 and "interrupted" in err and not out, err
assert not os.path.exists(f"/proc/{pid}"), "the command goes on"

assert children(fetching)  # the daemon, at least
with open(f"/proc/{fetching.pid}/status") as f:
    masks = dict(s.split(":", 1) for s in f)
# As nohup has it.
assert int(masks["SigIgn"], 16) >> signal.SIGHUP - 1 & 1, masks["SigIgn"]
assert int(masks["SigCgt"], 16) >> signal.SIGINT - 1 & 1, masks["SigCgt"]
fetching.send_signal(signal.SIGINT)
status, out, err = end(fetching)
assert status == 1 and "interrupted" in err and not out, err

status, text, err = end(main)
assert status == 0, err
print(text)
assert len(text.splitlines()) <= 40
with open(profile) as f:
    saved = f.read()
p = json.loads(saved)
assert p["command"].startswith("sh -c shift; exec"), p["command"]
assert r" \xe9 " + 100 * "é" in p["command"], p["command"]
assert p["command"].endswith("é"), p["command"]
assert abs(sum(p["shares"].values()) - 100) < 1e-6, p["shares"]
# A machine with much other work may leave it undecided.
decided = p["bottleneck"] == "fetch"
assert decided or p["bottleneck"] == "undecided", p
assert (p["verdict"], p["likely"]) == ("highly", "fetch"), p
# The source gives 80 samples a second, the trainer takes 800. On a machine that
# does much else it takes fewer, and after a pause the source gives more.
assert 20 < slower * p["R0"]["value"] < 160, p["R0"]
assert 1.3 * p["R0"]["value"] < p["R1"]["value"], p["R1"]
assert p["R1"]["value"] - p["R1"]["ci"] < 900, p["R1"]
assert p["G"]["bound"] and 0.3 < p["enough_share"] < 1, p
actions = {q["name"]: q["epoch_s"] for q in p["actions"]}
assert actions["a source twice as fast"] < 0.9 * actions["nothing changed"]
assert actions["everything cached"] < 0.9 * actions["nothing changed"], actions
assert any("librefrain through the mount" in n for n in p["notes"]), p["notes"]
assert len(p["series"]) > 5 and p["P"] >= p["R1"]["value"], p["series"]
misses = {q["x"]: q["miss"] for q in p["points"]}
# None between them is measured if the two rates could differ by chance.
assert misses[0] == 1 and misses[1] == 0 and len(misses) in (2, 5), misses
again = end(analyze("--from", profile))
assert again == (0, text, ""), again
again = end(analyze("--from", profile, "--json"))
assert again == (0, saved + "\n", ""), again
half = json.loads(end(analyze("--from", profile, "--json", "--cached",
                              "50%"))[1])
assert half["cache"] == 0.5
assert half["shares"]["fetch_pct"] < p["shares"]["fetch_pct"], half

again = end(analyze("--from", profile, "--html", work + "/page.html"))
assert again == (0, text, ""), again
with open(work + "/page.html") as f:
    page = f.read()
xml.dom.minidom.parseString(page.replace("<!DOCTYPE html>", ""))
assert len(page) < 200000 and "fetch" in page and page.count("<svg") == 6
# Each plot has a table, that of the rates an open one.
assert page.count("<details") == 5 and page.count("<table") == 7, page
# Both say what to do first.
first = "First reduce the wait" if decided else "First measure again for longer"
assert all(first in t for t in (text, page)), text
assert decided != ("VERDICT: undecided" in text), text
assert not any(s in page for s in ("http", "src=", "href", "url(", "script"))

# A link and a FIFO are still there to be written to; a file is replaced.
os.mkdir(work + "/out")
os.symlink("target", work + "/out/link")
os.mkfifo(work + "/out/fifo")
reader = subprocess.Popen(["cat", work + "/out/fifo"], stdout=subprocess.PIPE,
                          text=True)
again = end(analyze("--from", profile, "--html", work + "/out/fifo"))
assert again == (0, text, ""), again
assert reader.communicate(timeout=10 * patience)[0] == page
again = end(analyze("--from", profile, "--html", work + "/out/link",
                    "--profile", work + "/out/link/none"))
assert again[0] == 1 and "cannot write" in again[2], again
assert len(os.listdir(work + "/out")) == 2, os.listdir(work + "/out")
again = end(analyze("--from", profile, "--html", work + "/out/link"))
assert again == (0, text, ""), again
with open(work + "/out/target") as f:
    assert os.path.islink(work + "/out/link") and f.read() == page
# A reader of the report that goes away does not take the profile with it.
with open(work + "/out/saved", "w") as f:
    os.fchmod(f.fileno(), 0o640)
gone, out = os.pipe()
os.close(gone)
status = subprocess.call([refrain, "analyze", "--from", profile, "--json",
                          "--profile", work + "/out/saved"], stdout=out)
os.close(out)
assert status != 0
with open(work + "/out/saved") as f:
    assert f.read() == saved and os.fstat(f.fileno()).st_mode & 0o777 == 0o640
assert len(os.listdir(work + "/out")) == 4, os.listdir(work + "/out")

# One that is killed leaves its mount; the next one removes it.
killed = analyze(src, "--", *loader("{}"))
until = time.monotonic() + 20 * patience
while not any(os.path.ismount(f"{work}/tmp/{d}")
              for d in os.listdir(work + "/tmp")):
    assert time.monotonic() < until and killed.poll() is None
    time.sleep(0.01)
killed.kill()
killed.communicate()
assert os.listdir(work + "/tmp") and os.listdir(work + "/fast")
# It does not touch another user's mount, even one whose daemon is silent.
others = f"{work}/tmp/refrain-analyze.{killed.pid}.others"
os.mkdir(others)
fuse = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
rc = libc.mount(b"others", others.encode(), b"fuse.refrain", 0,
                b"fd=%d,rootmode=40000,user_id=12345,group_id=12345,"
                b"allow_other" % fuse)
root = os.geteuid() == 0   # others may not make such a mount
assert rc == 0 or not root, os.strerror(ctypes.get_errno())
status, out, err = end(analyze(src, "--", "true", "{}"))
assert status == 1 and "ended during" in err, err
assert rc or libc.umount2(others.encode(), 2) == 0, "it was unmounted"
os.close(fuse)
if os.path.isdir(others):
    os.rmdir(others)
left = os.listdir(work + "/tmp") + os.listdir(work + "/fast")
assert not left, left
other.kill()
PY
[ -z "$(mounts_below "$work")" ] || fail "mounts are left"
echo PASS

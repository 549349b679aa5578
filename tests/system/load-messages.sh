#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The messages of `refrain load`: statistics after Ctrl-C, options in
# messages, images in the progress, advice, damage in examples, and why
# --echo auto has not changed anything yet.
set -eu
name=load-speaks
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
data=$work/data
"$refrain" make-dataset --classes 3 --images 90 --size 64x48 "$data" >/dev/null

# says TEXT OPTION...: a run that succeeds and prints TEXT.
says() {
	text=$1
	shift
	"$refrain" load "$data" --size 32 "$@" >"$work/out" 2>"$work/err" ||
		fail "load $*: $(cat "$work/err")"
	grep -q -e "$text" "$work/out" || {
		cat "$work/out"
		fail "load $*: no '$text'"
	}
}

# refused STATUS TEXT OPERAND OPTION...
refused() {
	want=$1 text=$2
	shift 2
	rc=0
	"$refrain" load "$@" >"$work/out" 2>"$work/err" || rc=$?
	expect "status of load $*" $rc "$want"
	grep -q -e "$text" "$work/err" || {
		cat "$work/err"
		fail "load $*: no '$text'"
	}
}

image=$(cd "$data" && find . -name '*.jpg' | sort | head -n 1)
cp -r "$data" "$work/bad"
find "$work/bad" -name '*.jpg' | sort | sed -n '1~4p' | while read -r f; do
	echo '<html>' >"$f"
done

# -- Ctrl-C: once a batch was used, as its trace says -------------------------
for signal in INT TERM; do
	rm -f "$work/trace"
	python3 - "$refrain" "$data" "$work" $signal <<'END' ||
import json, os, signal, subprocess, sys, time

refrain, data, work, name = sys.argv[1:]
number = getattr(signal, "SIG" + name)
trace = os.path.join(work, "trace")
p = subprocess.Popen([refrain, "load", data, "--batch", "8", "--size", "32",
    "--epochs", "1000000", "--step-ms", "20", "--trace", trace, "--json"],
    stdout=subprocess.PIPE)
while not (os.path.exists(trace) and os.path.getsize(trace)):
    assert p.poll() is None, "it ended"
    time.sleep(0.01)
p.send_signal(number)
out = p.communicate(timeout=60)[0]
assert p.returncode == -number, p.returncode
assert json.loads(out)["steps"] >= 1, out
END
		fail "no statistics after SIG$signal"
	note "statistics after SIG$signal"
done

# -- Messages name options ----------------------------------------------------
refused 2 '--window is 20' "$data" --batch 16 --echo 4 --window 20
refused 2 '--reads-ahead 64' "$data" --batch 16 --echo auto --window 20
refused 1 '--memory is 1048576' "$data" --batch 64 --memory 1M
# shellcheck disable=SC3045 # dash and bash have it
ldd "$refrain" | grep -q -e libasan -e libtsan || (
	ulimit -d 400000
	unset='--memory is not set, and a quarter of the data of this process'
	refused 1 "$unset" "$data" --batch 1024 --size 224
) || exit 1
refused 1 '--max-damage allows' "$work/bad" --batch 8
refused 2 'single image' "$data/$image" --batch 8
note 'messages name options'

# -- What is printed ----------------------------------------------------------
says 'time  *[0-9.]* s in all' --batch 8
says 'echoes would not help' --batch 8 --step-ms 50 --steps 8
says 'slowest is' --batch 8 --no-hash
! grep -E 'would help, --echo ([5-9]|4\.[1-9]|[0-9]{2})' "$work/out" ||
	fail 'advice for more echoes than are worth it'
says 'slowest is' --batch 8 --no-hash --echo auto
! grep 'would help' "$work/out" || fail 'advice for a run with --echo auto'
says 'too short for a change' --batch 8 --echo auto
says 'a first change needs a run of [0-9]* fresh' --batch 8 --echo auto
data=$work/bad
says 'damage    23 examples, 46 times' --batch 8 --epochs 2 --policy zero \
	--max-damage 1
data=$work/data
note 'time, advice, damage, and what auto waits for'

# -- Images in the progress of a terminal ------------------------------------
python3 - "$refrain" "$data" <<'END' || fail 'no images in the progress'
import os, pty, re, sys

seen = b""
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "load", sys.argv[2], "--batch", "8",
        "--size", "32", "--step-ms", "20", "--steps", "40", "--epochs", "9"])
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    seen += part
os.waitpid(pid, 0)
sys.exit(not re.search(rb", \d+ images, \d+/s", seen))
END
note 'images in the progress'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Python package beside `refrain load --no-hash` with the same options, and
# beside PyTorch's DataLoader with torchvision, in rounds in which each comes
# first in turn; two loaders in threads of one process beside two processes; and
# eight processes that share their batches beside one alone.
#
#   ROUNDS=5 FILES=DIR bench/python.sh
#
# FILES is a directory of directories of JPEGs; without it one of 500 images of
# 500x375 is made. Prints ratios, medians of the rounds: rate_* of batches a
# second to the command's, cpu_* of images a core-second to the command's (which
# other work on the machine disturbs less), torchvision_* of images a
# core-second to DataLoader's, two_threads of images a second to those of two
# processes, share_8 of images a second of the slowest of eight to one alone's,
# share_8_cpu of the processor time of all eight to that of one. Writes
# bench-python.json.
set -u
name=python
bench=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/lib.sh
. "$bench/lib.sh"

rounds=${ROUNDS:-5}
python=$(sed -n 's/^PYTHON = //p' Makefile)
{ [ -n "$python" ] && [ -d python/pkg ]; } || bench_skip 'python/ is not built'
machine=$(machine) # before OMP_NUM_THREADS, by which nproc goes
LD_LIBRARY_PATH=$PWD/.libs PYTHONPATH=$PWD/python/pkg
export LD_LIBRARY_PATH PYTHONPATH OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
XDG_CACHE_HOME=$work/index
XDG_RUNTIME_DIR=$work
export XDG_CACHE_HOME XDG_RUNTIME_DIR
files=${FILES:-$work/files}
[ -n "${FILES:-}" ] ||
	"$refrain" make-dataset "$files" --classes 20 --images 500 \
		--size 500x375 >/dev/null || bench_fail 'there are no images'

# command ECHO EPOCHS: its line of JSON; then the package's.
command_run() {
	"$python" "$bench/with_cpu.py" "$refrain" load "$files" --batch 64 \
		--threads 1 --echo "$1" --epochs "$2" --type f32 \
		--layout nchw --no-hash --json >>"$work/command-$1" \
		2>/dev/null || bench_fail 'refrain load'
}
package_run() {
	"$python" "$bench/peer_python.py" "$files" "$2" "$1" batch=64 \
		threads=1 type=f32 layout=nchw >>"$work/python-$1" ||
		bench_fail 'the package'
}
pair() {
	if [ $((round % 2)) -eq 1 ]; then
		command_run "$@"
		package_run "$@"
	else
		package_run "$@"
		command_run "$@"
	fi
}

two_run() {
	"$python" "$bench/python_two.py" "$1" "$files" 4 batch=64 threads=1 \
		type=f32 layout=nchw >>"$work/two-$1" || bench_fail "two $1"
}

torchvision=no
"$python" -c 'import torch, torchvision' 2>/dev/null && torchvision=yes
round=1
while [ "$round" -le "$rounds" ]; do
	pair 1 4
	[ $torchvision = no ] || "$python" "$bench/peer_torchvision.py" \
		"$files" 0 1 >>"$work/torchvision" || bench_fail 'torchvision'
	pair 4 4
	if [ $((round % 2)) -eq 1 ]; then
		two_run threads
		two_run processes
	else
		two_run processes
		two_run threads
	fi
	"$python" "$bench/python_share.py" 8 "$files" 4 batch=64 threads=1 \
		type=f32 layout=nchw >>"$work/share" || bench_fail 'a share'
	round=$((round + 1))
done
"$python" - "$work" "$json_out" "$machine" <<'END'
import json, statistics, sys
work, out, machine = sys.argv[1:]


def rows(name):
    try:
        with open(work + '/' + name) as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


result = {'bench': 'python', 'machine': machine}
for echo in '1', '4':
    pairs = list(zip(rows('python-' + echo), rows('command-' + echo)))
    result['rate_e' + echo] = statistics.median(
        p['steps_per_s'] / (c['steps'] / c['seconds']) for p, c in pairs)
    result['cpu_e' + echo] = statistics.median(
        c['cpu_ms'] / p['cpu_ms'] for p, c in pairs)
    pairs = list(zip(rows('torchvision'), rows('python-' + echo)))
    if pairs:
        result['torchvision_e' + echo] = statistics.median(
            t['cpu_ms'] / p['cpu_ms'] for t, p in pairs)
result['two_threads'] = statistics.median(
    t['images_per_s'] / p['images_per_s']
    for t, p in zip(rows('two-threads'), rows('two-processes')))
shares = rows('share')
result['share_8'] = statistics.median(s['ratio'] for s in shares)
result['share_8_cpu'] = statistics.median(
    s['jobs'] * s['cpu_ms'] / s['cpu_ms_alone'] for s in shares)
for name, bar in (('rate_e1', .98), ('rate_e4', .98),
                  ('cpu_e1', .98), ('cpu_e4', .98),
                  ('torchvision_e1', 2.7), ('torchvision_e4', 5),
                  ('two_threads', .95), ('share_8', .95)):
    if name in result:
        print('%-16s %6.3f  (bar %g)' % (name, result[name], bar))
with open(out, 'w') as f:
    json.dump(result, f)
END

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A `refrain recode` that is killed at any point is continued by the next run,
# and the target is that of a run that nobody has disturbed, with any number of
# threads. REFRAIN_KILLS=N kills more often.
set -eu
name=recode-killed
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
requires python3
# shellcheck source=tests/system/recode-lib.sh
. "$(dirname "$0")/recode-lib.sh"

kills=${REFRAIN_KILLS:-12}

# killed DIR OPTION ...: kill runs, each a little later than the one before,
# and then let one end.
killed() {
	python3 - "$kills" "$refrain" recode "$@" <<-'EOF'
	import subprocess, sys, time
	kills, command = int(sys.argv[1]), sys.argv[2:]
	start = time.monotonic()
	subprocess.run(command[:-1] + [command[-1] + ".whole"], check=True,
	               stdout=subprocess.DEVNULL)
	whole = time.monotonic() - start
	ended = 0
	for i in range(kills):
	    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
	    try:
	        ended += run.wait(whole * (i + 1) / kills) == 0
	    except subprocess.TimeoutExpired:
	        run.kill()
	        run.wait()
	subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
	print("%d runs, %d of them were killed" % (kills, kills - ended))
	EOF
}

for t in 1 2 4; do
	killed --quality 60 --threads $t "$data" "$work/files.$t"
	same "$work/files.$t" "$work/files.$t.whole"
	same "$work/files.$t" "$work/files.1"
	killed --quality 60 --shards 50K --threads $t "$data" "$work/tars.$t"
	same "$work/tars.$t" "$work/tars.$t.whole"
	same "$work/tars.$t" "$work/tars.1"
done
[ -z "$(find "$work" -name '*.new')" ] || fail 'incomplete files are left'
note 'the target never depends on kills and threads'

# A record that ends within a line, as after a crash, costs only that unit.
cp -a "$work/files.1" "$work/torn"
rm "$work/torn/recode.json"
truncate -s -20 "$work/torn/.refrain-recode"
ends 0 re-coded --quality 60 "$data" "$work/torn"
same "$work/torn" "$work/files.1"
note 'a torn record is mended'

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # variables come from lib.sh
#
# For tests of jobs that share batches; sourced after lib.sh. Makes a dataset.
requires python3 timeout

XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
data=$work/data
"$refrain" make-dataset --classes 3 --images 240 --size 96x72 "$data" \
	>/dev/null

# with_jobs SECONDS KILLS: run the Python on standard input, which imports
# share_jobs.
with_jobs() {
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$0") \
		timeout $(($1 * patience)) python3 - "$refrain" "$data" \
		"${REFRAIN_SEED:-$$}" "$patience" "$2" || fail 'see above'
}

# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain load` on a directory; sourced after lib.sh. Makes $data,
# a dataset of $images images, of which a run has $epochs epochs, $fresh
# examples in all, in batches of $batch.
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
batch=16
epochs=2
fresh=$((images * epochs))
data=$work/data
"$refrain" make-dataset --classes 3 --images $images --size 96x72 "$data" \
	>/dev/null

# load OPTION ...: run `refrain load` on the dataset; its JSON is in $work/json.
load() {
	"$refrain" load "$data" --batch $batch --epochs $epochs --size 32 \
		--seed 5 --json "$@" >"$work/json" 2>"$work/err" || {
		cat "$work/err"
		fail "refrain load $*"
	}
}

# value NAME: print a value of the last load.
value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$work/json"
}

# is NAME WANT: check a value of the last load; $about describes that load.
is() {
	expect "$about: $1" "$(value "$1")" "$2"
}

hashes() {
	echo "$(value stream_hash) $(value pixel_hash)"
}

# refused TEXT OPTION ...: check that the run ends with status 1 or 2 and one
# line with the text.
refused() {
	text=$1
	shift
	if "$refrain" load "$data" --batch $batch --epochs $epochs --size 32 \
		--seed 5 "$@" >"$work/out" 2>"$work/err"; then
		fail "not refused: $*"
	fi
	expect "lines for $*" "$(wc -l <"$work/err")" 1
	grep -q "$text" "$work/err" || fail "$*: $(cat "$work/err")"
}

# covers TIMES TRACE ...: check that each example is fresh TIMES times in these
# traces together.
covers() {
	times=$1
	shift
	cat "$@" | awk -v times="$times" -v images=$images '
		$3 == 0 { n[$2]++ }
		END {
			for (i = 0; i < images; i++)
				if (n[i] != times) {
					print i " was fresh " n[i] + 0 " times"
					exit 1
				}
		}' || fail "the examples are not covered by $*"
}

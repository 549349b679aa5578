# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of loaders and plans that outlive the daemon of a mount that is held
# (P1); sourced after lib.sh. Makes "$src/train", a dataset of $images images
# and $bytes bytes.
requires fuse python3 timeout
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

images=300
"$refrain" make-dataset --classes 3 --images $images --size 96x72 \
	"$work/data" >/dev/null
mv "$work/data" "$src/train"
bytes=$(tree_bytes "$src/train")

# held_mount TIER OPTION ...: mount in the background, with a holder.
held_mount() {
	tier=$1
	shift
	"$refrain" mount "$src" "$mnt" --cache "$work/$tier" \
		--log-file "$work/log" "$@" || fail 'cannot mount'
	scan_through
	holder=$(awk '/^PPid:/ { print $2 }' "/proc/$(status_field pid)/status")
}

ends_with_mount() {
	"$refrain" umount "$mnt" || fail 'cannot unmount'
	wait_for 10 has_ended "$holder" || fail 'the holder outlives the mount'
}

# load OUT DATASET OPTION ...: run `refrain load`; its JSON is in OUT.
load() {
	out=$1
	shift
	timeout $((120 * patience)) "$refrain" load "$@" --batch 16 \
		--size 32 --seed 5 --json >"$out" 2>"$out.err"
}

# value NAME FILE: print a value of the JSON in FILE.
value() {
	sed -n "s/.*[{,]\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}

# same WHAT GOT WANT: check that the samples and their order are equal.
same() {
	for hash in pixel_hash stream_hash; do
		expect "$hash, $1" "$(value $hash "$2")" "$(value $hash "$3")"
	done
	expect "errors, $1" "$(value errors "$2")" 0
}

# killed: kill the daemon, and wait for its end.
killed() {
	was=$(status_field pid)
	kill -9 "$was"
	wait_for 20 has_ended "$was" || fail 'the daemon does not end'
}

upgraded() {
	"$refrain" upgrade "$mnt" --log-level "$1" || fail 'cannot upgrade'
}

has_plans() {
	has_status plans "$1" && has_status plans_again "$1"
}

# plans_return HOW N: check that N plans are there again within a second.
plans_return() {
	wait_for 1 has_plans "$2" ||
		fail "$1: $(status_field plans) plans, of $2"
}

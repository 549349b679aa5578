# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables are shared
#
# For tests of `refrain umount`; sourced after lib.sh. Makes a source of 40
# files, and mounts it in the background.

make_tree "$src" 1 40 100000
cache=$work/cache

# in_background [OPTION ...]: mount in the background, which is the default.
in_background() {
	"$refrain" mount "$src" "$mnt" --cache "$cache:8M" "$@" ||
		fail 'cannot mount'
	pid=$(status_field pid)
}

is_mounted() {
	[ -n "$(mounts_below "$work")" ]
}

# not_running: has the process ended? It stays a zombie if no process adopts
# orphans.
not_running() {
	! grep '^State:' "/proc/$1/status" 2>/dev/null | grep -qv '[ZX] '
}

# complains TEXT ...: check that the last error was one line with these texts.
complains() {
	expect 'lines of the error' "$(wc -l <"$work/err")" 1
	for text; do
		grep -qF -- "$text" "$work/err" ||
			fail "not '$text', but: $(cat "$work/err")"
	done
}

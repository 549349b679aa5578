# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154 # variables come and go by it
#
# Ordinary users, for tests that root runs. Sourced after lib.sh; makes $work
# and $short passable.

chmod 711 "$work" "$short"

# as USER COMMAND ...: run the command with that user's rights and a minimal
# environment.
as() {
	user=$1
	shift
	setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups \
		env -i PATH="$PATH" HOME=/nonexistent LC_ALL=C \
		${REFRAIN_DISABLE:+REFRAIN_DISABLE="$REFRAIN_DISABLE"} \
		${user_runtime:+XDG_RUNTIME_DIR="$user_runtime"} "$@"
}

# requires_users: skip the test unless there are two users who can reach the
# build folder.
requires_users() {
	requires setpriv
	for u in nobody daemon; do
		id "$u" >/dev/null 2>&1 || skip "there is no user $u"
		as $u test -x "$refrain" || skip "$u cannot reach $refrain"
	done
}

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The programs have the static probes that doc/operations.md lists, with as many
# arguments, if configure found sys/sdt.h, and none otherwise. Without
# sys/sdt.h, the macro TRACE() makes no code and computes no argument.
set -eu
command -v readelf >/dev/null || {
	echo 'skipped: needs readelf'
	exit 77
}
top=$(cd "${srcdir:-.}" && pwd)
work=$(mktemp -d "$PWD/probes.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

# probes FILE: print the name and the number of arguments of each probe in the
# program.
probes() {
	readelf -n "$1" | awk '
	/Provider: / { ours = $2 == "refrain" }
	/Name: / { name = $2 }
	/Arguments:/ && ours { print name, NF - 1 }' | sort -u
}

# Print the same for the table of the document.
sed -n '/^| probe | when it fires/,/^$/p' "$top/doc/operations.md" |
	awk -F'|' '/^\| `/ {
		gsub(/[` ]/, "", $2)
		print $2, split($4, arguments, ",")
	}' | sort >"$work/listed"
[ -s "$work/listed" ] || fail 'doc/operations.md has no table of probes'

library=.libs/librefrain.so
if grep -qx '#define HAVE_PROBES 1' config.h; then
	probes refrain >"$work/built"
	probes $library >"$work/library"
	grep -E '^(ask|next|release) ' "$work/listed" >"$work/loader"
else
	: >"$work/loader"
	cp "$work/loader" "$work/listed"
	for f in refrain $library; do
		! readelf -n "$f" | grep -q 'Provider: refrain' ||
			fail "$f has probes"
	done
	cp "$work/listed" "$work/built"
	cp "$work/listed" "$work/library"
fi
diff "$work/listed" "$work/built" || fail 'refrain has other probes'
diff "$work/loader" "$work/library" || fail 'the library has other probes'

# -- The macro ----------------------------------------------------------------
cat >"$work/macro.c" <<'END'
#include "common/base/trace.h"

int main(void)
{
	int computed = 0, seen = 7;

	TRACE(example, computed++, seen);
	return computed;
}
END
cc=$(sed -n 's/^CC = //p' Makefile)
# build OPTION ...: build that program.
build() {
	$cc -std=c11 -Wall -Wextra -Werror -I"$top/src" "$@" "$work/macro.c" \
		-o "$work/macro" || fail "building with $*"
}
build -UHAVE_PROBES
"$work/macro" || fail 'an argument was computed'
[ -z "$(probes "$work/macro")" ] || fail 'a probe without HAVE_PROBES'
grep -qx '#define HAVE_PROBES 1' config.h || {
	echo 'probes: configured without them; their part is left out'
	exit 0
}
build -DHAVE_PROBES
[ "$(probes "$work/macro")" = 'example 2' ] || fail 'no probe'

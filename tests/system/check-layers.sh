#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The layer check finds one of each kind of violation, and nothing in a tree
# that keeps the rules.
set -eu
check=${srcdir:-$(dirname "$0")/../..}/build-aux/check-layers
check=$(cd "$(dirname "$check")" && pwd)/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

spdx='/* SPDX-License-Identifier: MIT */'

# file PATH LINE...: a C file that begins with the SPDX line.
file() {
	path=$tree/$1
	shift
	mkdir -p "$(dirname "$path")"
	printf '%s\n' "$spdx" "$@" >"$path"
}

good_tree() {
	rm -rf "${tree:?}"/*
	file src/base/err.h
	file src/store/store.h '#include "base/err.h"'
	file src/store/entry_impl.h
	file src/store/entry.c '#include "store/entry.h"' '#include <stdio.h>'
	file src/cache/cache.c '#include "store/store.h"'
}

expect() {
	what=$1
	out=$("$check" "$tree") && {
		echo "not found: $what"
		exit 1
	}
	case $out in
	*"$what"*) ;;
	*) echo "expected '$what', got: $out"; exit 1 ;;
	esac
	good_tree
}

good_tree
"$check" "$tree"

file src/store/entry.c '#include "cache/cache.h"'
expect 'src/store/entry.c:2: "cache/cache.h" is not below store'

file src/store/entry.c '#include "origin/origin.h"'
expect '"origin/origin.h" is not below store'

file src/cache/cache.c '#include "store/entry_impl.h"'
expect '"store/entry_impl.h" is private to store'

file src/cache/cache.c '#include "elsewhere/x.h"'
expect '"elsewhere/x.h" is of no known part'

file src/elsewhere/x.c
expect 'part elsewhere has no level'

# shellcheck disable=SC2016 # backquotes
echo '`store_gone()` of `src/store/store.h`' >"$tree/HACKING.md"
expect 'HACKING.md:1: there is no store_gone()'

# shellcheck disable=SC2016
echo 'see `src/store/gone.c`' >"$tree/HACKING.md"
expect 'HACKING.md:1: there is no src/store/gone.c'

file src/store/entry.c '#include <fuse_lowlevel.h>'
expect 'src/store/entry.c:2: <fuse_lowlevel.h> has no business here'

file src/base/ring.c '#include <liburing.h>' '#include <xxhash.h>'
expect 'src/base/ring.c:3: <xxhash.h> has no business here'

file tools/status.c '#include <turbojpeg.h>'
expect '<turbojpeg.h> has no business here'

file src/store/entry.c "$(printf '\t%073d' 0)"
expect 'src/store/entry.c:2: wider than 80 columns'

printf 'int x;\n' >"$tree/src/store/entry.c"
expect 'src/store/entry.c:1: no SPDX line'

mkdir -p "$tree/tools"
printf '#!/bin/sh\ntrue\n' >"$tree/tools/script"
expect 'tools/script:1: no SPDX line'

if ctags --version 2>/dev/null | grep -q Universal; then
	file src/store/entry.c 'int f(void)' '{' \
		"$(yes '	g();' | head -n 58)" '}'
	expect 'src/store/entry.c:2: f is longer than 60 lines'
	file src/store/entry_impl.h 'static inline int f(void)' '{' \
		"$(yes '	g();' | head -n 58)" '}'
	expect 'src/store/entry_impl.h:2: f is longer than 60 lines'
	file src/store/entry.c 'static int f(void)' '{' '}'
	file src/cache/cache.c 'static int f(void)' '{' '}'
	expect 'f() has a namesake in src/cache/cache.c'
	file src/store/entry.c 'struct thing {' '	int x;' '};'
	file src/cache/cache.c 'union thing {' '	int x;' '};'
	expect 'struct, union or enum thing has a namesake in src/cache/cache.c'
fi

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
	file src/common/base/err.h
	file src/mount/store/store.h '#include "common/base/err.h"'
	file src/mount/store/tier_impl.h
	file src/mount/store/tier.c '#include "mount/store/tier_impl.h"' \
		'#include <stdio.h>'
	file src/mount/cache/cache.c '#include "mount/store/store.h"'
	file src/loader/core/turn.h
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

file src/mount/store/tier.c '#include "mount/cache/cache.h"'
expect 'src/mount/store/tier.c:2: "mount/cache/cache.h" is not below store'

file src/common/base/err.h '#include "origin/origin.h"'
expect '"origin/origin.h" is not below base'

file src/mount/cache/cache.c '#include "mount/store/tier_impl.h"'
expect '"mount/store/tier_impl.h" is private to store'

file src/mount/cache/cache.c '#include "mount/elsewhere/x.h"'
expect '"mount/elsewhere/x.h" is of no known room'

file src/mount/cache/cache.c '#include "loader/core/turn.h"'
expect '"loader/core/turn.h": the loader and the mount are apart'

file src/loader/engine/engine.c '#include "origin/origin.h"'
expect '"origin/origin.h": the loader and the mount are apart'

file src/mount/elsewhere/x.c
expect 'room elsewhere has no level'

file src/loader/core/tier.c
expect 'src/mount/store/tier.c:1: another file of src/ has this name'

file src/mount/store/store_index.c
expect 'store_index.c:1: "index" means something else'

# shellcheck disable=SC2016 # backquotes
echo '`store_gone()` of `src/mount/store/store.h`' >"$tree/HACKING.md"
expect 'HACKING.md:1: there is no store_gone()'

# shellcheck disable=SC2016
echo 'see `src/mount/store/gone.c`' >"$tree/HACKING.md"
expect 'HACKING.md:1: there is no src/mount/store/gone.c'

file src/mount/store/tier.c '#include <fuse_lowlevel.h>'
expect 'src/mount/store/tier.c:2: <fuse_lowlevel.h> has no business here'

file src/common/base/ring.c '#include <liburing.h>' '#include <xxhash.h>'
expect 'src/common/base/ring.c:3: <xxhash.h> has no business here'

file tools/status.c '#include <turbojpeg.h>'
expect '<turbojpeg.h> has no business here'

file src/mount/store/tier.c "$(printf '\t%073d' 0)"
expect 'src/mount/store/tier.c:2: wider than 80 columns'

printf 'int x;\n' >"$tree/src/mount/store/tier.c"
expect 'src/mount/store/tier.c:1: no SPDX line'

mkdir -p "$tree/tools"
printf '#!/bin/sh\ntrue\n' >"$tree/tools/script"
expect 'tools/script:1: no SPDX line'

if ctags --version 2>/dev/null | grep -q Universal; then
	file src/mount/store/tier.c 'int f(void)' '{' \
		"$(yes '	g();' | head -n 58)" '}'
	expect 'src/mount/store/tier.c:2: f is longer than 60 lines'
	file src/mount/store/tier_impl.h 'static inline int f(void)' '{' \
		"$(yes '	g();' | head -n 58)" '}'
	expect 'src/mount/store/tier_impl.h:2: f is longer than 60 lines'
	file src/mount/store/tier.c 'static int f(void)' '{' '}'
	file src/mount/cache/cache.c 'static int f(void)' '{' '}'
	expect 'f() has a namesake in src/mount/cache/cache.c'
	file src/mount/store/tier.c 'struct thing {' '	int x;' '};'
	file src/mount/cache/cache.c 'union thing {' '	int x;' '};'
	expect 'enum thing has a namesake in src/mount/cache/cache.c'
fi

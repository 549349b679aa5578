#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The check of rooms finds a room that is too large, files that need each other
# in a circle, and a struct that too many files reach into, and nothing in a
# tree that keeps the bars.
set -eu
check=${srcdir:-$(dirname "$0")/../..}/build-aux/check-rooms
check=$(cd "$(dirname "$check")" && pwd)/check-rooms
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/pond"

# ring LAST: each of four files calls the next one, the fourth calls LAST.
ring() {
	for i in 1 2 3 4; do
		next=f$((i + 1))
		[ $i -lt 4 ] || next=$1
		echo "void f$i(void) { $next(); }" >"$tree/src/pond/$i.c"
	done
}

# reach FILES: that many files use a member of a struct, each in another way.
reach() {
	echo 'struct frog { struct frog *next; int legs; };' \
		>"$tree/src/pond/frog_impl.h"
	rm -f "$tree"/src/pond/*.c
	n=0
	while read -r line; do
		n=$((n + 1))
		[ $n -gt "$1" ] || echo "$line" >"$tree/src/pond/frog$n.c"
	done <<-'END'
		int a(struct frog *f) { return f->legs; }
		int b(struct frog f) { return f.legs; }
		int c(struct pond *p) { return p->frogs[p->n]->legs; }
		int d(void) { return frog_of(1, (2))->next->legs; }
		int e(void) { struct frog *x, *y; return at[y->legs]; }
		int g(int *q) { CONTAINER_OF(q, struct frog, legs)->legs++; }
		struct frog *h(struct frog *f) { return f ? f->next : 0; }
	END
}

# full FILES LINES: a room of that many files, and of that many lines.
full() {
	rm -f "$tree"/src/pond/*
	for i in $(seq "$1"); do
		echo "int f$i;" >"$tree/src/pond/f$i.c"
	done
	yes '' | head -n $(($2 - $1)) >"$tree/src/pond/pond.h"
}

expect() {
	out=$("$check" "$tree") && status=0 || status=$?
	[ "$status" -ne 77 ] || { echo "$out"; exit 77; }
	case "$status $out" in
	"$1"*) ;;
	*) echo "expected '$1', got: $status $out"; exit 1 ;;
	esac
}

ring nothing
expect '0 '
ring f1
expect '1 src/pond/1.c:1: needs src/pond/2.c, which needs it'
reach 6
expect '0 '
reach 7
expect '1 src/pond/frog_impl.h:1: 7 files reach into struct frog'
full 18 4500
expect '0 '
full 19 4500
expect '1 src/pond:1: 19 .c files and 4500 lines in one room'
full 18 4501
expect '1 src/pond:1: 18 .c files and 4501 lines in one room'

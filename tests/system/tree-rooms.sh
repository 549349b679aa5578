#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The check of rooms finds files that need each other in a circle, a struct that
# too many files of other rooms reach into, functions that are too long on
# average, and functions that nothing or only a test calls. It finds nothing in
# a tree that keeps the limits.
set -eu
check=${srcdir:-$(dirname "$0")/../..}/build-aux/check-rooms
check=$(cd "$(dirname "$check")" && pwd)/check-rooms
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/pond"

# ring LAST: make four files, each of which calls the next one; the fourth calls
# LAST.
ring() {
	for i in 1 2 3 4; do
		next=f$((i + 1))
		[ $i -lt 4 ] || next=$1
		echo "void f$i(void) { $next(); }" >"$tree/src/pond/$i.c"
	done
}

# reach FILES: make that many files that use a member of a struct, each in
# another way.
reach() {
	rm -rf "$tree"/src/pond/*
	mkdir -p "$tree/src/bank"
	cat >"$tree/src/bank/frog.h" <<-'END'
		struct frog { struct frog *next; int legs; };
		struct frogs { struct frog **frogs; int n; };
		struct frog *frog_of(int, int);
	END
	n=0
	while read -r line; do
		n=$((n + 1))
		[ $n -gt "$1" ] || echo "$line" >"$tree/src/pond/frog$n.c"
	done <<-'END'
		int a(struct frog *f) { return f->legs; }
		int b(struct frog f) { return f.legs; }
		int c(struct frogs *p) { return p->frogs[p->n]->legs; }
		int d(void) { return frog_of(1, (2))->next->legs; }
		int e(void) { struct frog *x, *y; return at[y->legs]; }
		int g(int *q) { CONTAINER_OF(q, struct frog, legs)->legs++; }
		int h(struct frog *f) { return (*f).legs; }
	END
}

# door ROOM STRUCT FILES: make that many files of another room that initialise a
# member of a struct in the room's door; the room itself reads it.
door() {
	rm -rf "$tree/src"
	mkdir -p "$tree/src/pond" "$tree/src/base" "$tree/src/lake"
	{
		printf 'struct %s {\n\tint legs;\n};\n' "$2"
		echo "static inline int l(struct $2 *f) { return f->legs; }"
	} >"$tree/src/$1/$1.h"
	for i in $(seq "$3"); do
		echo "struct $2 f$i = {.legs = 4};" >"$tree/src/lake/frog$i.c"
	done
}

# long LINES OF: make 10 functions, some of which are long.
long() {
	rm -f "$tree"/src/pond/*
	for i in $(seq 10); do
		n=4
		[ "$i" -gt "$1" ] || n=$2
		echo "static int l$i(void)"
		echo '{'
		yes '	x();' | head -n $((n - 3))
		echo '}'
	done >"$tree/src/pond/long.c"
}

# called WHERE: make a function that is declared in a header, and a call of it
# in WHERE.
called() {
	rm -rf "$tree"/src/pond/* "$tree/tests"
	mkdir "$tree/tests"
	echo 'int croak(void);' >"$tree/src/pond/pond.h"
	echo 'int croak(void) { return 1; }' >"$tree/src/pond/croak.c"
	echo 'int leap(void) { return croak(); }' >>"$tree/$1"
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
expect '1 src/bank/frog.h:1: 7 files reach into struct frog'
rm -r "$tree/src/bank"
for room in pond base; do
	door $room frog 6
	expect '0 '
	door $room frog 7
	expect "1 src/$room/$room.h:1: 7 files reach into struct frog"
	door $room hash128 7
	expect '0 '
	door $room hash128 6
	expect '1 build-aux/check-rooms:1: struct hash128 is no exception'
done
rm -r "$tree/src/base" "$tree/src/lake"
long 4 16
expect '0 '
long 5 16
expect '1 src:1: functions have a median of 16 lines, p90 16'
long 1 31
expect '1 src:1: functions have a median of 4 lines, p90 31'
called src/pond/other.c
expect '0 '
called src/pond/croak.c
expect '1 src/pond/croak.c:1: no other file uses croak(): it could be static'
called tests/croak.c
expect '1 src/pond/croak.c:1: only tests use croak()'
rm "$tree/tests/croak.c"
expect '1 src/pond/croak.c:1: no other file uses croak(): it could be static'

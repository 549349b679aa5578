#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests of bench/epoch-reader: it reads every file once in each epoch, in a new
# order each time, and notices wrong bytes in every way of reading. The model of
# an LRU cache fetches the number of files that was counted by hand.
set -eu
src=${srcdir:-$(dirname "$0")/../..}
reader=$PWD/bench/epoch-reader
model=$(cd "$src" && pwd)/bench/lru-model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "$*"
	exit 1
}

mkdir -p "$work/data/a/b" "$work/data/c"
i=0
for size in 0 1 4095 4096 4097 65536 65537 1048576 3000001; do
	i=$((i + 1))
	head -c "$size" /dev/urandom >"$work/data/a/b/file $i"
	head -c "$size" /dev/urandom >"$work/data/c/$i"
done
ln -s nowhere "$work/data/link"
n=$((2 * i))

# The sums are the same for every way of reading; O_DIRECT is used where the
# file system supports it.
for way in read mmap direct pread4k; do
	"$reader" "$work/data" --threads 3 --io $way \
		--make-sums "$work/sums.$way" >"$work/out" 2>&1 ||
		{ [ $way = direct ] && grep -q 'Invalid arg' "$work/out"; } ||
		fail "$way: $(cat "$work/out")"
	[ $way = direct ] || cmp "$work/sums.read" "$work/sums.$way"
done
[ "$(wc -l <"$work/sums.read")" -eq $n ] || fail "not $n files"

"$reader" "$work/data" --threads 4 --epochs 3 --sums "$work/sums.read" \
	--order "$work/order" --json >"$work/out"
[ "$(grep -c '"errors": 0' "$work/out")" -eq 3 ] || fail "3 epochs expected"

# Every file is read once in each epoch. No two epochs have the same order, but
# the same seed gives the same order.
for epoch in 1 2 3; do
	grep "^$epoch " "$work/order" | cut -d' ' -f3- >"$work/order.$epoch"
	[ "$(sort -u "$work/order.$epoch" | wc -l)" -eq $n ] ||
		fail "epoch $epoch is not a permutation"
done
cmp -s "$work/order.1" "$work/order.2" && fail "epochs 1 and 2 are alike"
cmp -s "$work/order.2" "$work/order.3" && fail "epochs 2 and 3 are alike"
"$reader" "$work/data" --first-epoch 3 --order "$work/again" >/dev/null
cut -d' ' -f3- "$work/again" | cmp - "$work/order.3"

# Wrong bytes and a file that was cut are reported with the name of the file.
# More than one byte is changed, because a single random byte may be equal to
# the old one.
head -c 16 /dev/zero |
	dd of="$work/data/c/7" bs=1 seek=100 conv=notrunc 2>/dev/null
"$reader" "$work/data" --sums "$work/sums.read" >"$work/out" 2>&1 &&
	fail "a wrong byte went unnoticed"
grep -q "'c/7': contents differ" "$work/out" || fail "$(cat "$work/out")"
truncate -s 4095 "$work/data/c/4"
"$reader" "$work/data" --sums "$work/sums.read" >"$work/out" 2>&1 &&
	fail "a short file went unnoticed"

"$reader" "$work/nowhere" 2>/dev/null && fail "a missing directory"
"$reader" --help | grep -q refrain && fail "it is not part of refrain"

# The cache has room for two of three files: a, b and c miss; c hits; a replaces
# b, and b replaces c.
cat >"$work/order" <<END
1 10 a
1 10 b
1 10 c
2 10 c
2 10 a
2 10 b
END
"$model" 20 <"$work/order" >"$work/out"
printf '1 30 0 3\n2 20 1 3\n' | cmp - "$work/out"

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The list of files in the packages (package_files) agrees with the tree: it has
# each manual page and each file of the Python package, and no deleted one.
# Debian's list of symbols agrees with the functions of the library, and the
# site with the documents. `make check-packages`, which takes long, checks the
# packages themselves.
set -eu
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
here=$top/tests/system
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# same WHAT: compare the lines of $work/tree and $work/promised.
same() {
	for list in tree promised; do
		LC_ALL=C sort "$work/$list" >"$work/$list.sorted"
	done
	if [ ! -s "$work/tree" ] ||
		! diff "$work/tree.sorted" "$work/promised.sorted"; then
		echo "FAILED: $1 of the tree (<) and of the list (>)"
		exit 1
	fi
}

(cd "$top/python/refrain" && ls ./*.py ./*.pyi ./py.typed) |
	sed 's|^\./||' >"$work/tree"
sed -n 's|^python3-refrain .*/dist-packages/refrain/||p' \
	"$here/package_files" | grep -v '\.so$' >"$work/promised"
same 'files of the Python package'

# In section 3, each function has a page that refers to the common one.
(cd "$top/man" && ls ./*.man ./*.7) | grep -v '/refrain_' |
	sed -e 's|^\./||' -e 's/\.man$//' -e 's/\.7$//' >"$work/tree"
sed -n 's|^refrain /usr/share/man/man[17]/\(.*\)\.[17]\.gz$|\1|p' \
	"$here/package_files" >"$work/promised"
same 'manual pages'

(cd "$top/monitoring" && ls ./*.yaml ./*.json) | sed 's|^\./||' >"$work/tree"
sed -n 's|^refrain /usr/share/refrain/monitoring/||p' \
	"$here/package_files" >"$work/promised"
same 'files for Prometheus and Grafana'

(cd "$top" && ls doc/*.md doc/*/*.md) >"$work/tree"
grep -o '"doc/[^"]*\.md"' "$top/build-aux/site" | tr -d '"' >"$work/promised"
same 'documents'

# An archive has no debian/.
if [ -e .libs/librefrain.so ] && [ -e "$top/debian/librefrain0.symbols" ]; then
	nm -D --defined-only .libs/librefrain.so |
		sed -n 's/.* T \(refrain_[^@]*\).*/\1/p' >"$work/tree"
	sed -n 's/^ \(refrain_[^@]*\)@.*/\1/p' \
		"$top/debian/librefrain0.symbols" >"$work/promised"
	same 'functions of the library'
fi

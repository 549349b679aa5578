#!/bin/sh
# SPDX-License-Identifier: MIT
#
# doc/operations.md against the program: every counter and gauge has a row
# there and no row is of another; every option of a command that it names, and
# every section that it refers to, exists.
set -eu
refrain=$PWD/refrain
doc=${srcdir:-.}/doc/operations.md
work=$(mktemp -d "$PWD/operations.XXXXXX")
trap 'rm -rf "$work"' EXIT

# named TABLE: what the manual page would get for it.
named() {
	printf '@%s@\n' "$1" | "$refrain" --fill-man |
		sed -n 's/^\\fB\([a-z_]*\)\\fR.*/\1/p'
}

# rows HEADING: the first column of the table below it.
# shellcheck disable=SC2016 # backquotes of Markdown
rows() {
	awk -v heading="### $1" '/^##/ { on = ($0 == heading) } on' "$doc" |
		sed -n 's/^| `\([a-z_]*\)` |.*/\1/p'
}

same() {
	named "$1" >"$work/has"
	rows "$2" >"$work/says"
	[ -s "$work/has" ] || { echo "no table $1"; exit 1; }
	diff -u "$work/has" "$work/says" || {
		echo "$doc and the program differ in: $2"
		exit 1
	}
}

same COUNTERS Counters
same GAUGES Gauges
same TIER_GAUGES 'Of each tier'
same PEER_GAUGES 'Of each peer'

# Options: those of other programs in its examples are not ours.
for c in $("$refrain" --words); do
	"$refrain" --words "$c" | cut -d ' ' -f 1
done >"$work/options"
cat >>"$work/options" <<END
--bind
--drop
--epochs
--now
--rates
--threads
END
grep -o -e '--[a-z][a-z-]*' "$doc" | sort -u | while read -r option; do
	grep -qxF -e "$option" "$work/options" || {
		echo "$doc: there is no option $option"
		exit 1
	}
done

# Links within the page: GitHub's way to name a heading.
sed -n 's/^##* //p' "$doc" | tr '[:upper:] ' '[:lower:]-' |
	tr -cd 'a-z0-9_\n-' >"$work/headings"
grep -o '](#[^)]*)' "$doc" | sed 's/](#//; s/)//' | while read -r link; do
	grep -qxF -e "$link" "$work/headings" || {
		echo "$doc: no section #$link"
		exit 1
	}
done

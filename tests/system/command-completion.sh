#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The completions that bash offers for the beginning of a command line, and zsh
# and fish, where they are installed.
set -eu
command -v bash >/dev/null || {
	echo 'skipped: needs bash'
	exit 77
}
work=$(mktemp -d "$PWD/completion.XXXXXX")
trap 'rm -rf "$work"' EXIT
src=$(cd "${srcdir:-.}" && pwd)
mkdir "$work/some dir" "$work/other"
: >"$work/a-list"
PATH=$PWD:$PATH
export PATH
cd "$work"

# Each prints what a shell offers for a command line, one a line.
bash_offers() {
	# shellcheck disable=SC2016 # for bash to expand
	bash -c '. "$0/completions/refrain"
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_refrain
		printf "%s\n" "${COMPREPLY[@]}"' "$src" "$@"
}
# Its own functions for files and the like need a terminal.
zsh_offers() {
	# shellcheck disable=SC2016 # for zsh to expand
	zsh -f -c 'compadd() {
			while [[ $1 != -- ]]; do shift; done
			shift
			print -l -- ${(M)@:#${PREFIX}*}
		}
		_files() {
			[[ ${1-} = -/ ]] && print -l -- ${PREFIX}*(N/) ||
				print -l -- ${PREFIX}*(N)
		}
		_groups() { print -l -- ${(f)"$(cut -d: -f1 /etc/group)"} }
		top=$1
		shift
		words=("$@")
		CURRENT=$#
		PREFIX=$words[CURRENT]
		. $top/completions/_refrain' zsh "$src" "$@"
}
fish_offers() {
	# shellcheck disable=SC2016 # for fish to expand
	HOME=$work fish --no-config -c 'source $argv[1]/completions/refrain.fish
		complete --do-complete "$argv[2..]"' "$src" "$@" |
		cut -f 1 | sed 's|/$||'
}

# offers WANT WORD ...: every shell, where the last word is to be completed.
offers() {
	want=$1
	shift
	for shell in bash zsh fish; do
		command -v $shell >/dev/null || continue
		${shell}_offers "$@" >"$work/got" 2>/dev/null || :
		grep -qxF -e "$want" "$work/got" || {
			echo "$shell, for '$*', without '$want':"
			cat "$work/got"
			exit 1
		}
	done
}

offers mount refrain ''
offers make-dataset refrain ''
offers --version refrain --v
offers 'status' refrain st
offers status refrain help st
offers index refrain in
offers --output refrain index --
offers --cache refrain mount --
offers --foreground refrain mount --
offers --allow-other refrain mount --a
offers never refrain mount --verify ''
offers 'some dir' refrain mount so
offers 'some dir' refrain mount --cache so
offers other refrain warm ot
offers root refrain mount --group roo
offers '--json' refrain status --j
offers '--debug' refrain status --d
offers batch refrain load --echo-point ''
offers a-list refrain load a
offers a-list refrain load --state a

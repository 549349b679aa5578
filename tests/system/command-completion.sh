#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The completions that bash offers for the beginning of a command line.
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

# offers WANT WORD ...: the last word is the one to be completed.
offers() {
	want=$1
	shift
	# shellcheck disable=SC2016 # for bash to expand
	got=$(bash -c '. "$0/completions/refrain"
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_refrain
		IFS="|"
		printf %s "${COMPREPLY[*]}"' "$src" "$@" 2>/dev/null)
	case "|$got|" in
	*"|$want|"*) ;;
	*)
		echo "for '$*': '$got', without '$want'"
		exit 1
		;;
	esac
}

offers mount refrain ''
offers make-dataset refrain ''
offers --version refrain --v
offers 'status' refrain st
offers status refrain help st
offers index refrain in
offers --output refrain index --
offers '--cache|--foreground' refrain mount --
offers --allow-other refrain mount --a
offers 'always|never' refrain mount --verify ''
offers 'some dir' refrain mount so
offers 'some dir' refrain mount --cache so
offers other refrain warm ot
offers root refrain mount --group roo
offers '--json' refrain status --j
offers '--debug' refrain status --d
offers 'before|after|batch' refrain load --echo-point ''
offers a-list refrain load a
offers a-list refrain load --state a

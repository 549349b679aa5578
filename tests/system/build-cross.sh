#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A build for another machine runs nothing that it has built: configure sees
# that its programs cannot run here, leaves the manual pages out and says so,
# and no rule of `make` or `make install` runs one. With REFRAIN_FOR_BUILD the
# pages are made by that program.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "$PWD/cross.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*"
	tail -n 20 "$work/said" 2>/dev/null
	exit 1
}

command -v cc >/dev/null || { echo 'skipped: needs cc'; exit 77; }
[ -x "$top/configure" ] || { echo 'skipped: no configure'; exit 77; }

# A compiler that makes programs for another machine, which do not run here.
cat >"$work/cc" <<'END'
#!/bin/sh
cc "$@" || exit
out=a.out
for word; do
	case $word in
	-c | -E | -S | -shared | --version | -v | -V | -qversion) exit 0 ;;
	esac
	[ "${last:-}" != -o ] || out=$word
	last=$word
done
[ ! -x "$out" ] ||
	printf '#!/bin/sh\necho >>%s/ran\nexit 126\n' "${0%/cc}" >"$out"
END
chmod +x "$work/cc"

# cross WORD ...: configure in a folder of its own, and print what make would
# do.
cross() {
	rm -f "$work/ran"
	(cd "$work" && "$top/configure" --host=aarch64-linux-gnu CC="$work/cc" \
		PKG_CONFIG="${PKG_CONFIG:-pkg-config}" --disable-static \
		--cache-file=cache "$@") >"$work/said" 2>&1 || fail 'configure'
	rm -f "$work/ran" # configure itself tests whether a program runs
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -n -C "$work" all \
		install DESTDIR="$work/root" >"$work/rules" \
		2>"$work/make.err" || fail "make -n"
}

# runs_none: check that no rule begins with a program of this build.
runs_none() {
	[ ! -e "$work/ran" ] || fail 'a program was run'
	! grep -E '(^|[;&|(] *)\./(refrain|tests|bench|examples)' \
		"$work/rules" >"$work/said" || fail 'a rule runs a program'
}

cross
grep -q 'man pages *no: cross compiling without REFRAIN_FOR_BUILD' \
	"$work/said" || fail 'the pages are not left out'
grep -q "main\.o" "$work/rules" ||
	fail 'no rules'
runs_none
! grep -q -e --fill-man "$work/rules" || fail 'pages are made'

# configure would refuse the cache with another environment
sed -i '/ac_cv_env_/d' "$work/cache"
cross REFRAIN_FOR_BUILD=/opt/other/refrain
runs_none
grep -q '/opt/other/refrain --fill-man' "$work/rules" || fail 'no pages'

#!/bin/sh
# SPDX-License-Identifier: MIT
#
# packaging/refrain.spec, built here from the archive of `make dist`. rpmlint
# finds only what packaging/refrain.rpmlintrc explains; the packages have the
# same files as those for Debian; and in a new root, which is a Debian with rpm,
# they are installed, upgraded while programs read a mount, and removed
# (package_life.sh). `make check-packages` runs this.
#
# REFRAIN_ROOTS is a directory that keeps the Debian root between runs.
# REFRAIN_RPMS is a directory with built packages, so that nothing is built.
set -eu
name='package-rpm'
# shellcheck source=tests/system/lib.sh
. "${srcdir:-.}/tests/system/lib.sh"
# shellcheck source=tests/system/root-lib.sh
. "${srcdir:-.}/tests/system/root-lib.sh"
requires root fuse bash rpmbuild rpmlint mmdebstrap pivot_root xz
here=$(cd "${srcdir:-.}/tests/system" && pwd)
packaging=$(cd "${srcdir:-.}/packaging" && pwd)

gives_up() {
	tail -n 30 "$work/log"
	fail "$*"
}

# -- Three versions: the second differs by its number, the third fails ---------

# The scripts that rpm runs after an installation need bash, but begin with sh.
scripts='%{_rpmconfigdir}'

# build RELEASE OPTION ...: build packages in $work/rpm/RELEASE. With an OPTION,
# files of an earlier build are packed again.
build() {
	version=$1
	shift
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES \
		rpmbuild "$@" --nodeps --without check \
		--define "_topdir $work/top" --define "_sourcedir $work" \
		--define "_rpmdir $work/rpm/$version" \
		--define "refrain_release $version" \
		--define '_build_id_links none' \
		--define "__brp_compress bash $scripts/brp-compress /usr" \
		--define "__brp_strip bash $scripts/brp-strip %{__strip}" \
		--define "_smp_mflags -j$(nproc)" \
		--buildroot "$work/installed" --noclean -bb \
		"$packaging/refrain.spec" >"$work/log" 2>&1 || gives_up rpmbuild
}
build_three() {
	make -s dist-xz >"$work/log" 2>&1 || gives_up 'make dist-xz'
	mv refrain-*.tar.xz "$work"
	build 1
	build 2 --short-circuit
	cat >"$work/installed/usr/bin/refrain" <<'END'
#!/bin/sh
echo 'this program does nothing' >&2
exit 1
END
	build 3 --short-circuit
}
rpms=${REFRAIN_RPMS:-$work/rpm}
[ -n "${REFRAIN_RPMS:-}" ] || build_three

# -- What they are -------------------------------------------------------------

rpmlint --rpmlintrc "$packaging/refrain.rpmlintrc" \
	"$packaging/refrain.spec" "$rpms"/1 >"$work/log" 2>&1 ||
	gives_up rpmlint
tail -n 1 "$work/log"
grep -q ' 0 errors, 0 warnings' "$work/log" || gives_up 'rpmlint'

# Compare names and places as in Debian, without files that a system adds to
# each package.
find "$rpms/1" -name '*.rpm' | while read -r file; do
	package=$(rpm -qp --qf '%{NAME}' "$file")
	rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$file" |
		sed -n "s|^[-l][^ ]* |$package |p"
done | sed -e 's/librefrain-devel/librefrain-dev/g' \
	-e 's|/lib64/\(python3\)[.0-9]*/site-packages/|/lib/\1/dist-packages/|
		s|-py3[.0-9]*\.egg-info/|.egg-info/|
		s|/lib64/|/lib/TRIPLET/|
		s| /usr/lib/systemd/| /lib/systemd/|' \
	-e 's|/zsh/site-functions/|/zsh/vendor-completions/|' \
	-e 's|\.gz$||' |
	grep -v -e ' /usr/share/licenses/' -e '/\.build-id/' \
		-e '\.egg-info/SOURCES.txt' -e ' /usr/share/doc/refrain/doc/' |
	LC_ALL=C sort >"$work/files"
sed 's|\.gz$||' "$here/package_files" |
	grep -v -e '/changelog' -e '/copyright$' -e '/lintian/' |
	LC_ALL=C sort | diff - "$work/files" >"$work/log" ||
	gives_up 'other files than promised (<), or more (>)'

# -- Their life ----------------------------------------------------------------

{
	# The libraries that an image with the command needs.
	sed -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' "$packaging/Containerfile" |
		sed -n 's/.*RUN packages="\([^"]*\)".*/\1/p' | tail -n 1 |
		tr -s ' \t' '\n'
	printf '%s\n' mount passwd python3 rpm util-linux
} >"$work/depends"
debian_with "$work/depends"
unpack_debian "$work/root"
# Directories that the packages filesystem and python3 of Fedora have.
python=$(rpm -qpl "$rpms"/1/*/python3-refrain-*.rpm |
	sed -n 's|^\(/.*/site-packages\)/.*|\1|p' | head -n 1)
for dir in "$python" /usr/lib64/pkgconfig /usr/share/licenses \
	/usr/share/fish/vendor_completions.d /usr/share/zsh/site-functions; do
	mkdir -p "$work/root$dir"
done
for version in 1 2 3; do
	mkdir -p "$work/root/packages/$version"
	find "$rpms/$version" -name '*.rpm' \
		-exec cp {} "$work/root/packages/$version" \;
done
live_in "$work/root" rpm || gives_up 'in the root'

# Archives and packages. debian/ is not in the archives of `make dist`.
EXTRA_DIST += build-aux/packages.mk

# The time of all files in an archive: of the commit, or of the archive that the
# tree comes from.
dist_epoch = $${SOURCE_DATE_EPOCH:-$$(git --git-dir='$(srcdir)/.git' \
	log -1 --format=%ct 2>/dev/null || stat -c %Y '$(srcdir)/NEWS.md')}

# Packages for Debian, and their source package: debs/. For clones alone. What
# `make` was given is not for the build of the packages.
debs: dist-xz
	rm -rf debs && $(MKDIR_P) debs
	version=$$(dpkg-parsechangelog -S Version \
		-l '$(srcdir)/debian/changelog') && \
	cp '$(distdir).tar.xz' "debs/refrain_$${version%-*}.orig.tar.xz" && \
	cp -R '$(abs_srcdir)/debian' debs/debian && \
	chmod -R u=rwX,go=rX debs/debian && \
	cd debs && tar -xf refrain_*.orig.tar.xz && \
	mv debian '$(distdir)' && cd '$(distdir)' && \
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES \
		dpkg-buildpackage -us -uc && \
	cd .. && rm -rf '$(distdir)'

.PHONY: debs

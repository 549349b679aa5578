# Archives and packages. debian/ is not in the archives of `make dist`.
EXTRA_DIST += build-aux/packages.mk build-aux/release \
	build-aux/release_debs.py build-aux/release_sbom.py build-aux/site \
	build-aux/site-theme/main.html build-aux/site-theme/style.css

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

# The folder of a release, signed with the secret key KEY, and its verification
# by the public key PUB. For clones alone. DRAFT=1 takes a tree that is not
# tagged. RELEASE_DEBS is a folder with packages that are there: none are built.
# REBUILD=1 builds the packages once more and compares them.
RELEASE = release
KEY = $(HOME)/.minisign/refrain.key
PUB = $(srcdir)/packaging/release.pub
DRAFT =
REBUILD =
RELEASE_DEBS =
release_tool = '$(srcdir)/build-aux/release'
release_options = --version '$(VERSION)' --pub '$(PUB)' --tree '$(srcdir)' \
	--deb-version "$$(dpkg-parsechangelog -S Version \
		-l '$(srcdir)/debian/changelog')" \
	$(if $(DRAFT),--draft) --tarball '$(distdir).tar.xz'

release:
	@$(release_tool) ready '$(RELEASE)' $(release_options) --key '$(KEY)'
	$(MAKE) $(if $(RELEASE_DEBS),dist-xz,debs)
	@$(release_tool) make '$(RELEASE)' $(release_options) --key '$(KEY)' \
		--debs '$(if $(RELEASE_DEBS),$(RELEASE_DEBS),debs)'

release-check:
	$(MAKE) $(if $(REBUILD),debs,dist-xz)
	@$(release_tool) check '$(RELEASE)' $(release_options) \
		$(if $(REBUILD),--rebuilt debs)

# The documents and manual pages as a site of static pages.
SITE = site
site: $(man_pages) $(man_pages_3)
	rm -rf '$(SITE)' && SOURCE_DATE_EPOCH="$(dist_epoch)" \
		'$(srcdir)/build-aux/site' '$(srcdir)' man '$(SITE)'

.PHONY: debs release release-check site

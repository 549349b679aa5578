# Archives and packages.
EXTRA_DIST += build-aux/packages.mk

# The time of all files in an archive: of the commit, or of the archive that the
# tree comes from.
dist_epoch = $${SOURCE_DATE_EPOCH:-$$(git --git-dir='$(srcdir)/.git' \
	log -1 --format=%ct 2>/dev/null || stat -c %Y '$(srcdir)/NEWS.md')}

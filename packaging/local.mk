# What packages need beside the programs.
dist_pkglibexec_SCRIPTS += packaging/refrain-upgrade-mounts

# Of the archive `rpmbuild -ta` takes the spec.
EXTRA_DIST += packaging/refrain.spec packaging/refrain.rpmlintrc

# What packages need beside the programs.
dist_pkglibexec_SCRIPTS += packaging/refrain-upgrade-mounts

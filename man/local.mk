# Manual pages: NAME.man with its tables filled in by the program itself.
man_pages = \
	man/refrain.1 \
	man/refrain-clear.1 \
	man/refrain-fault.1 \
	man/refrain-index.1 \
	man/refrain-load.1 \
	man/refrain-make-dataset.1 \
	man/refrain-mount.1 \
	man/refrain-plan.1 \
	man/refrain-refresh.1 \
	man/refrain-status.1 \
	man/refrain-umount.1 \
	man/refrain-verify.1 \
	man/refrain-warm.1
man_MANS = $(man_pages)
CLEANFILES += $(man_pages)
EXTRA_DIST += $(man_pages:.1=.man)

SUFFIXES = .man .1
.man.1:
	$(AM_V_GEN)$(MKDIR_P) man && ./refrain --fill-man < '$<' > $@.tmp && \
	mv $@.tmp $@
$(man_pages): refrain$(EXEEXT)

# Manual pages: NAME.man with its tables filled in by the program itself, or,
# when cross compiling, by one that was built for this machine.
man_pages = \
	man/refrain.1 \
	man/refrain-analyze.1 \
	man/refrain-caches.1 \
	man/refrain-clear.1 \
	man/refrain-doctor.1 \
	man/refrain-exporter.1 \
	man/refrain-fault.1 \
	man/refrain-hold.1 \
	man/refrain-index.1 \
	man/refrain-load.1 \
	man/refrain-make-dataset.1 \
	man/refrain-mount.1 \
	man/refrain-peers.1 \
	man/refrain-plan.1 \
	man/refrain-recode.1 \
	man/refrain-refresh.1 \
	man/refrain-serve.1 \
	man/refrain-share.1 \
	man/refrain-status.1 \
	man/refrain-top.1 \
	man/refrain-trace.1 \
	man/refrain-umount.1 \
	man/refrain-upgrade.1 \
	man/refrain-verify.1 \
	man/refrain-warm.1 \
	man/refrain-work.1
man_pages_3 = man/refrain_echo.3 man/refrain_loader.3
if HAVE_MAN
man_MANS = $(man_pages) $(man_pages_3)
endif
dist_man_MANS += man/refrain-s3.7
CLEANFILES += $(man_pages) $(man_pages_3)
EXTRA_DIST += $(man_pages:.1=.man) $(man_pages_3:.3=.man)

SUFFIXES = .man .1 .3
.man.1:
	$(AM_V_GEN)$(MKDIR_P) man && $(FILL_MAN) < '$<' > $@.tmp && \
	mv $@.tmp $@
.man.3:
	$(AM_V_GEN)$(MKDIR_P) man && $(FILL_MAN) < '$<' > $@.tmp && \
	mv $@.tmp $@
$(man_pages) $(man_pages_3): refrain$(EXEEXT)

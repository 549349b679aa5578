# The command, one subcommand a file, and the newcomer's scripts.
EXTRA_DIST += tools/packages tools/quickstart tools/run-tests

noinst_LTLIBRARIES += libmakedataset.la
libmakedataset_la_SOURCES = \
	tools/make_dataset.c tools/make_dataset.h \
	tools/mask_png.c tools/mask_png.h \
	tools/objects.c tools/objects.h \
	tools/picture.c tools/picture.h
libmakedataset_la_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
libmakedataset_la_LIBADD = libbase.la $(JPEG_LIBS)

# Keeps a mount whose daemon dies. It is small, so it takes from libbase only
# what it needs, and no library.
pkglibexec_PROGRAMS += refrain-hold
refrain_hold_SOURCES = tools/hold.c tools/hold_ends.c tools/hold_ends.h \
	tools/hold_mount.c tools/hold_mount.h \
	tools/hold_socket.c tools/hold_socket.h \
	tools/hold_wire.c tools/hold_wire.h \
	src/common/base/err.c src/common/base/escape.c \
	src/common/base/feature.c \
	src/common/base/mountinfo.c src/common/base/notifier.c \
	src/common/base/path.c src/common/base/proc.c \
	src/common/base/refuse.c src/common/base/send_fds.c \
	src/common/base/unmount.c
refrain_hold_CFLAGS = $(AM_CFLAGS)
refrain_hold_LDFLAGS = $(HOLD_LDFLAGS)
refrain_hold_LDADD =

# Serves metrics. Only this program has an HTTP server.
if HAVE_EXPORTER
pkglibexec_PROGRAMS += refrain-exporter
refrain_exporter_SOURCES = tools/exporter_main.c \
	tools/command.c tools/command.h \
	tools/exporter_options.c tools/exporter_options.h \
	tools/share_views.c tools/share_views.h \
	src/loader/share/share_link.c src/loader/share/share_place.c \
	src/loader/share/share_wire.c \
	src/mount/daemon/gauges.c src/mount/daemon/json_text.c
refrain_exporter_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
refrain_exporter_LDADD = libexporter.la libfleet.la libbase.la $(JANSSON_LIBS)
endif

bin_PROGRAMS += refrain
refrain_SOURCES = \
	tools/analyze.c \
	tools/analyze_output.c tools/analyze_output.h \
	tools/analyze_place.c tools/analyze_place.h \
	tools/caches.c \
	tools/clear.c \
	tools/command.c tools/command.h \
	tools/config_options.c tools/config_options.h \
	tools/doctor.c \
	tools/exporter.c \
	tools/exporter_options.c tools/exporter_options.h \
	tools/fault.c \
	tools/fleet_view.c tools/fleet_view.h \
	tools/holder.c tools/holder.h \
	tools/holders.c tools/holders.h \
	tools/index.c \
	tools/load.c tools/load.h \
	tools/load_echo.c \
	tools/load_options.c \
	tools/load_list.c \
	tools/load_report.c \
	tools/load_state.c \
	tools/main.c \
	tools/manual.c \
	tools/mount.c tools/far_options.h \
	tools/mount_helper.c \
	tools/mounts.c tools/mounts.h \
	tools/order_lines.c tools/order_lines.h \
	tools/peer_options.c tools/peer_options.h \
	tools/peers.c \
	tools/peers_unit.c tools/peers_unit.h \
	tools/plan.c \
	tools/progress.c tools/progress.h \
	tools/recode.c \
	tools/recode_try.c tools/recode_try.h \
	tools/refresh.c \
	tools/serve.c \
	tools/share.c \
	tools/share_views.c tools/share_views.h \
	tools/status.c \
	tools/status_debug.c \
	tools/status_view.c tools/status_view.h \
	tools/top.c tools/top.h \
	tools/trace.c \
	tools/umount.c \
	tools/upgrade.c tools/upgrade.h \
	tools/verify.c \
	tools/warm.c \
	tools/work.c
refrain_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) \
	-DPKGLIBEXECDIR='"$(pkglibexecdir)"'
refrain_LDADD = librecode.la libwork.la libloader.la libstudy.la \
	libsubject.la libdaemon.la libstore.la libfleet.la \
	libmakedataset.la libbase.la $(JANSSON_LIBS)

# For trainers in Python; they copy it, or put its directory on their path. It
# is a link to python/refrain/plan.py.
dist_pkgdata_DATA = tools/refrain_plan.py

# For those who look inside a process.
dist_pkgdata_DATA += tools/refrain-gdb.py \
	tools/refrain-trace.bt tools/refrain-trace-loader.bt

# mount(8) looks for helpers in sbin.
install-exec-hook:
	$(MKDIR_P) '$(DESTDIR)$(sbindir)'
	cd '$(DESTDIR)$(sbindir)' && rm -f mount.refrain && \
		$(LN_S) '$(bindir)/refrain' mount.refrain

uninstall-hook:
	rm -f '$(DESTDIR)$(sbindir)/mount.refrain'

# Files installed with the command: completion for shells, and a systemd unit
# for mounts that an fstab line does not suit.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = completions/refrain
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = completions/_refrain
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = completions/refrain.fish

EXTRA_DIST += systemd/refrain@.service.in doc/control-protocol.md \
	systemd/refrain-exporter.service.in
systemdsystemunit_DATA = systemd/refrain@.service
if HAVE_EXPORTER
systemdsystemunit_DATA += systemd/refrain-exporter.service
endif
dist_pkglibexec_SCRIPTS = systemd/refrain-unserved
units = systemd/refrain@.service systemd/refrain-exporter.service
CLEANFILES += $(units)

systemd/refrain@.service: systemd/refrain@.service.in Makefile
systemd/refrain-exporter.service: systemd/refrain-exporter.service.in Makefile
$(units):
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	sed -e 's|@bindir[@]|$(bindir)|g' \
		-e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
		'$(srcdir)/$@.in' > $@.tmp && \
	mv $@.tmp $@

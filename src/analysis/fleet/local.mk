noinst_LTLIBRARIES += libfleet.la
libfleet_la_SOURCES = \
	src/analysis/fleet/client.c src/analysis/fleet/client.h \
	src/analysis/fleet/doctor.c src/analysis/fleet/doctor.h \
	src/analysis/fleet/doctor_archive.c \
	src/analysis/fleet/doctor_findings.c \
	src/analysis/fleet/doctor_log.c \
	src/analysis/fleet/doctor_machine.c \
	src/analysis/fleet/doctor_impl.h \
	src/analysis/fleet/doctor_mount.c \
	src/analysis/fleet/doctor_places.c \
	src/analysis/fleet/doctor_secrets.c \
	src/analysis/fleet/doctor_words.c \
	src/analysis/fleet/fleet.c src/analysis/fleet/fleet.h \
	src/analysis/fleet/fleet_find.c \
	src/analysis/fleet/fleet_find_impl.h \
	src/analysis/fleet/follow.c src/analysis/fleet/follow.h \
	src/analysis/fleet/metrics.c src/analysis/fleet/metrics.h \
	src/analysis/fleet/read_groups.c src/analysis/fleet/read_groups.h \
	src/analysis/fleet/request.c src/analysis/fleet/request.h \
	src/analysis/fleet/silent.c src/analysis/fleet/silent_impl.h
libfleet_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libfleet_la_LIBADD = libcontrol.la libbase.la $(JANSSON_LIBS)

if HAVE_EXPORTER
noinst_LTLIBRARIES += libexporter.la
libexporter_la_SOURCES = \
	src/analysis/fleet/exporter.c src/analysis/fleet/exporter.h \
	src/analysis/fleet/exporter_clients.c \
	src/analysis/fleet/exporter_clients_impl.h \
	src/analysis/fleet/exporter_names.c \
	src/analysis/fleet/exporter_names_impl.h \
	src/analysis/fleet/exporter_listen.c \
	src/analysis/fleet/exporter_listen_impl.h \
	src/analysis/fleet/exporter_page.c \
	src/analysis/fleet/exporter_page_impl.h
libexporter_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(MICROHTTPD_CFLAGS) \
	-I$(builddir)/src
libexporter_la_LIBADD = libfleet.la $(MICROHTTPD_LIBS)
# The page is part of the program. `make refrain-exporter` makes it, too.
$(libexporter_la_OBJECTS): src/analysis/fleet/exporter_page.inc
BUILT_SOURCES += src/analysis/fleet/exporter_page.inc
CLEANFILES += src/analysis/fleet/exporter_page.inc
exporter_page = src/analysis/fleet/exporter_page.html
src/analysis/fleet/exporter_page.inc: $(exporter_page)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		od -An -v -tu1 '$(srcdir)/$(exporter_page)' | \
		sed -e 's/[0-9][0-9]*/&,/g' >$@.tmp && mv $@.tmp $@
endif
EXTRA_DIST += src/analysis/fleet/exporter_page.html

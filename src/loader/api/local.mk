# The loader library: a convenience library for the tests, which reach inside,
# and the installed one, which exports the public headers' names alone.
pkginclude_HEADERS = include/refrain/loader.h include/refrain/echo.h

noinst_LTLIBRARIES += libloader.la
libloader_la_SOURCES = \
	src/loader/api/echo_stage.c src/loader/api/echo_stage_impl.h \
	src/loader/api/echo_stage_change.c \
	src/loader/api/echo_stage_state.c \
	src/loader/api/loader.c src/loader/api/loader_impl.h \
	src/loader/api/stage_meter.c src/loader/api/stage_meter_impl.h \
	src/loader/api/stats_json.c \
	src/loader/api/version.c
libloader_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off $(JPEG_CFLAGS)
libloader_la_LIBADD = libshare.la libengine.la libpull.la libservice.la \
	libmounthelp.la libdataset.la \
	libfields.la libimage.la libcore.la libschedule.la libformat.la \
	libbase.la \
	$(JPEG_LIBS) -lm

lib_LTLIBRARIES += librefrain.la
librefrain_la_SOURCES =
librefrain_la_LIBADD = libloader.la
librefrain_la_LDFLAGS = $(AM_LDFLAGS) -shared -no-undefined \
	-version-info 0:0:0 -Wl,--gc-sections \
	-Wl,--version-script=$(srcdir)/src/loader/api/librefrain.map
librefrain_la_DEPENDENCIES = libloader.la \
	$(srcdir)/src/loader/api/librefrain.map
EXTRA_DIST += src/loader/api/librefrain.map

# The archive, too: one object, of what the public names need, in which all
# other names are made local: a program may have a hash64() of its own.
if ENABLE_STATIC
archivedir = $(libdir)
archive_DATA = librefrain.a
CLEANFILES += librefrain.a
librefrain.a: libloader.la
	$(AM_V_GEN)rm -f $@ && \
	$(CC) -r -nostdlib -o $@.o $$(sed -n \
		's/^REFRAIN_API.*[ *]\(refrain_[a-z_]*\)(.*/-Wl,-u,\1/p' \
		'$(srcdir)/include/refrain/loader.h' \
		'$(srcdir)/include/refrain/echo.h') \
		.libs/libloader.a && \
	$(OBJCOPY) --wildcard --keep-global-symbol='refrain_*' $@.o && \
	$(AR) cr $@ $@.o && rm -f $@.o
endif

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = src/loader/api/refrain.pc

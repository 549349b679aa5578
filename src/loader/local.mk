# The loader library: a convenience library for the tests, which reach inside,
# and the installed one, which exports the public header's names alone.
pkginclude_HEADERS = include/refrain/loader.h

noinst_LTLIBRARIES += libloader.la
libloader_la_SOURCES = \
	src/loader/augment.c src/loader/augment.h \
	src/loader/answer.c src/loader/answer.h \
	src/loader/auto.c src/loader/auto.h \
	src/loader/config.c src/loader/config.h \
	src/loader/crop.c \
	src/loader/dataset.c src/loader/dataset.h \
	src/loader/dataset_folder.c \
	src/loader/dataset_impl.h \
	src/loader/dataset_index.c \
	src/loader/dataset_list.c \
	src/loader/dataset_look.c \
	src/loader/dataset_query.c \
	src/loader/dataset_raw.c \
	src/loader/dataset_table.c \
	src/loader/dataset_tar.c \
	src/loader/dataset_tarfile.c src/loader/dataset_tarfile.h \
	src/loader/decode.c src/loader/decode.h \
	src/loader/decode_exif.c \
	src/loader/decode_header.c \
	src/loader/decode_impl.h \
	src/loader/decode_lib.c \
	src/loader/decode_turn.c \
	src/loader/direct.c \
	src/loader/echo.c \
	src/loader/emitter.c src/loader/emitter.h \
	src/loader/entry.c \
	src/loader/filter.c src/loader/filter.h \
	src/loader/image.h \
	src/loader/impl.h \
	src/loader/jitter.c src/loader/jitter.h \
	src/loader/kernels.c src/loader/kernels.h \
	src/loader/kernels_avx2.c \
	src/loader/loader.c \
	src/loader/make.c src/loader/make.h \
	src/loader/make_image.c \
	src/loader/memory.c src/loader/memory.h \
	src/loader/mount.c src/loader/mount.h \
	src/loader/mount_find.c \
	src/loader/mount_plan.c \
	src/loader/mount_talk.c \
	src/loader/next.c \
	src/loader/planner.c \
	src/loader/reader.c \
	src/loader/reader_life.c \
	src/loader/reader_next.c \
	src/loader/room.c \
	src/loader/slab.c src/loader/slab.h \
	src/loader/state.c \
	src/loader/stats.c \
	src/loader/version.c \
	src/loader/watch.c \
	src/loader/worker.c
# Samples are the same to the bit on every machine: float operations are not
# fused where the processor could.
libloader_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off $(JPEG_CFLAGS)
libloader_la_LIBADD = libschedule.la libentry.la libbase.la $(JPEG_LIBS) -lm

lib_LTLIBRARIES += librefrain.la
librefrain_la_SOURCES =
librefrain_la_LIBADD = libloader.la
librefrain_la_LDFLAGS = $(AM_LDFLAGS) -shared -no-undefined \
	-version-info 0:0:0 -Wl,--gc-sections \
	-Wl,--version-script=$(srcdir)/src/loader/librefrain.map
librefrain_la_DEPENDENCIES = libloader.la \
	$(srcdir)/src/loader/librefrain.map
EXTRA_DIST += src/loader/librefrain.map

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
		'$(srcdir)/include/refrain/loader.h') \
		.libs/libloader.a && \
	$(OBJCOPY) --wildcard --keep-global-symbol='refrain_*' $@.o && \
	$(AR) cr $@ $@.o && rm -f $@.o
endif

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = src/loader/refrain.pc

# The name of an entry and the checks of its bytes: the mount and the
# loader both need it.
noinst_LTLIBRARIES += libformat.la
libformat_la_SOURCES = \
	src/common/format/entry.c src/common/format/entry.h \
	src/common/format/jpeg_levels.c \
	src/common/format/jpeg_levels.h \
	src/common/format/key.c src/common/format/key.h \
	src/common/format/rendition.c src/common/format/rendition.h
libformat_la_CFLAGS = $(AM_CFLAGS)

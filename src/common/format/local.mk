# What an entry is called and how its bytes are checked: the mount and the
# loader both need it.
noinst_LTLIBRARIES += libformat.la
libformat_la_SOURCES = \
	src/common/format/entry.c src/common/format/entry.h \
	src/common/format/key.c src/common/format/key.h
libformat_la_CFLAGS = $(AM_CFLAGS)

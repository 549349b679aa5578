# What an entry is called and how its bytes are checked: the mount and the
# loader both need it.
noinst_LTLIBRARIES += libformat.la
libformat_la_SOURCES = \
	src/format/entry.c src/format/entry.h \
	src/format/key.c src/format/key.h

# The format of an entry is a library of its own: the loader has it without
# the store.
noinst_LTLIBRARIES += libentry.la
libentry_la_SOURCES = src/store/entry.c src/store/entry.h src/store/store.h

noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = \
	src/store/check.c \
	src/store/clear.c \
	src/store/identity.c src/store/identity.h \
	src/store/impl.h \
	src/store/index.c src/store/index.h \
	src/store/read.c \
	src/store/scan.c \
	src/store/store.c src/store/store.h \
	src/store/tier.c src/store/tier.h \
	src/store/write.c
libstore_la_LIBADD = libentry.la libbase.la
EXTRA_DIST += doc/formats.md

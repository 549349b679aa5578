# The format of an entry is a library of its own: the loader has it without
# the store.
noinst_LTLIBRARIES += libentry.la
libentry_la_SOURCES = src/store/entry.c src/store/entry_impl.h src/store/store.h

noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = \
	src/store/check.c \
	src/store/clear.c \
	src/store/identity.c src/store/identity_impl.h \
	src/store/store_impl.h \
	src/store/index.c src/store/index_impl.h \
	src/store/part.c \
	src/store/read.c \
	src/store/scan.c \
	src/store/store.c src/store/store.h \
	src/store/tier.c src/store/tier_impl.h \
	src/store/write.c
libstore_la_LIBADD = libentry.la libbase.la
EXTRA_DIST += doc/formats.md

noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = \
	src/store/check.c \
	src/store/clear.c \
	src/store/entry.c src/store/entry.h \
	src/store/identity.c src/store/identity.h \
	src/store/impl.h \
	src/store/index.c src/store/index.h \
	src/store/read.c \
	src/store/scan.c \
	src/store/store.c src/store/store.h \
	src/store/tier.c src/store/tier.h \
	src/store/write.c
libstore_la_LIBADD = libbase.la
EXTRA_DIST += doc/formats.md

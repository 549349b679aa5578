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
libstore_la_LIBADD = libformat.la libbase.la
EXTRA_DIST += doc/formats.md

noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = \
	src/mount/store/entry_table.c src/mount/store/entry_table_impl.h \
	src/mount/store/grants.c src/mount/store/grants.h \
	src/mount/store/grants_found.c \
	src/mount/store/root_caches.c src/mount/store/root_caches.h \
	src/mount/store/store.c src/mount/store/store.h \
	src/mount/store/store_impl.h \
	src/mount/store/store_clear.c \
	src/mount/store/store_part.c \
	src/mount/store/store_read.c \
	src/mount/store/store_verify.c \
	src/mount/store/store_write.c \
	src/mount/store/tier.c src/mount/store/tier_impl.h \
	src/mount/store/tier_identity.c src/mount/store/tier_identity_impl.h \
	src/mount/store/tier_remains.c \
	src/mount/store/tier_root.c \
	src/mount/store/tier_scan.c
libstore_la_CFLAGS = $(AM_CFLAGS)
libstore_la_LIBADD = libformat.la libbase.la
EXTRA_DIST += doc/formats.md

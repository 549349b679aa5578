noinst_LTLIBRARIES += libpull.la
libpull_la_SOURCES = \
	src/loader/pull/pull.c src/loader/pull/pull.h \
	src/loader/pull/pull_carrier.c \
	src/loader/pull/pull_clerk.c \
	src/loader/pull/pull_impl.h \
	src/loader/pull/pull_open.c
libpull_la_CFLAGS = $(AM_CFLAGS)

noinst_LTLIBRARIES += libpages.la
libpages_la_SOURCES = \
	src/pages/kept.c src/pages/kept_impl.h \
	src/pages/pages.c src/pages/pages.h
libpages_la_CFLAGS = $(AM_CFLAGS)

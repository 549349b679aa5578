noinst_LTLIBRARIES += libauto.la
libauto_la_SOURCES = src/auto/auto.c src/auto/auto.h src/auto/auto_impl.h \
	src/auto/fetch.c src/auto/row.c
libauto_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

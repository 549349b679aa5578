noinst_LTLIBRARIES += libauto.la
libauto_la_SOURCES = src/auto/auto.c src/auto/auto.h
libauto_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

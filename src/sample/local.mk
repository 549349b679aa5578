noinst_LTLIBRARIES += libsample.la
libsample_la_SOURCES = src/sample/sample.c src/sample/sample.h
libsample_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

noinst_LTLIBRARIES += libbatch.la
libbatch_la_SOURCES = src/batch/batch.h src/batch/slab.c
libbatch_la_CFLAGS = $(AM_CFLAGS)

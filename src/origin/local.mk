noinst_LTLIBRARIES += liborigin.la
liborigin_la_SOURCES = src/origin/origin.h
liborigin_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS)

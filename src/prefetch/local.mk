noinst_LTLIBRARIES += libprefetch.la
libprefetch_la_SOURCES = src/prefetch/prefetch.c src/prefetch/prefetch.h

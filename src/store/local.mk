noinst_LTLIBRARIES += libstore.la
libstore_la_SOURCES = src/store/store.h

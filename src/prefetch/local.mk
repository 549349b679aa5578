noinst_LTLIBRARIES += libprefetch.la
libprefetch_la_SOURCES =

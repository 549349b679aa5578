noinst_LTLIBRARIES += libcache.la
libcache_la_SOURCES =

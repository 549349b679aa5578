noinst_LTLIBRARIES += libdaemon.la
libdaemon_la_SOURCES =

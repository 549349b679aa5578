noinst_LTLIBRARIES += libdaemon.la
libdaemon_la_SOURCES = src/daemon/daemon.h

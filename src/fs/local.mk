noinst_LTLIBRARIES += libfs.la
libfs_la_SOURCES =

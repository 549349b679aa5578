noinst_LTLIBRARIES += libctl.la
libctl_la_SOURCES =

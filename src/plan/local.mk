noinst_LTLIBRARIES += libplan.la
libplan_la_SOURCES =

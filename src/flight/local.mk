noinst_LTLIBRARIES += libflight.la
libflight_la_SOURCES = src/flight/flight.c src/flight/flight.h
libflight_la_LIBADD = libdepth.la

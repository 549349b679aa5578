noinst_LTLIBRARIES += libmeter.la
libmeter_la_SOURCES = src/meter/meter.c src/meter/meter.h
libmeter_la_CFLAGS = $(AM_CFLAGS)

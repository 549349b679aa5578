noinst_LTLIBRARIES += libstandin.la
libstandin_la_SOURCES = src/stand_in/stand_in.c src/stand_in/stand_in.h
libstandin_la_CFLAGS = $(AM_CFLAGS)

noinst_LTLIBRARIES += libepochs.la
libepochs_la_SOURCES = src/epochs/epochs.c src/epochs/epochs.h
libepochs_la_CFLAGS = $(AM_CFLAGS)

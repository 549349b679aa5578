# The command, one subcommand a file, and the newcomer's scripts.
EXTRA_DIST += tools/packages tools/run-tests

noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	tools/make_dataset.c tools/make_dataset.h \
	tools/picture.c tools/picture.h
libdataset_la_CFLAGS = $(AM_CFLAGS) $(JPEG_CFLAGS)
libdataset_la_LIBADD = libbase.la $(JPEG_LIBS)

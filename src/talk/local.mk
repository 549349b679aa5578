noinst_LTLIBRARIES += libtalk.la
libtalk_la_SOURCES = \
	src/talk/line.c src/talk/line.h \
	src/talk/talk.c src/talk/talk.h
libtalk_la_CFLAGS = $(AM_CFLAGS)

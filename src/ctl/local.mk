noinst_LTLIBRARIES += libctl.la
libctl_la_SOURCES = \
	src/ctl/client.c src/ctl/client.h \
	src/ctl/conn.c src/ctl/conn.h \
	src/ctl/ctl.h \
	src/ctl/line.c src/ctl/line.h \
	src/ctl/place.c src/ctl/place.h \
	src/ctl/server.c src/ctl/server.h \
	src/ctl/text.c src/ctl/text.h
libctl_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libctl_la_LIBADD = libbase.la $(JANSSON_LIBS)

noinst_LTLIBRARIES += libctl.la
libctl_la_SOURCES = \
	src/ctl/ask.c src/ctl/ask.h \
	src/ctl/client.c src/ctl/client.h \
	src/ctl/conn.c src/ctl/conn_impl.h \
	src/ctl/gauges.c src/ctl/gauges.h \
	src/ctl/place.c src/ctl/place_impl.h \
	src/ctl/server.c src/ctl/server.h \
	src/ctl/silent.c src/ctl/silent_impl.h \
	src/ctl/text.c src/ctl/text.h
libctl_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libctl_la_LIBADD = libtalk.la libbase.la $(JANSSON_LIBS)

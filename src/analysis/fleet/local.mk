noinst_LTLIBRARIES += libfleet.la
libfleet_la_SOURCES = \
	src/analysis/fleet/client.c src/analysis/fleet/client.h \
	src/analysis/fleet/fleet.c src/analysis/fleet/fleet.h \
	src/analysis/fleet/fleet_find.c \
	src/analysis/fleet/fleet_find_impl.h \
	src/analysis/fleet/request.c src/analysis/fleet/request.h \
	src/analysis/fleet/silent.c src/analysis/fleet/silent_impl.h
libfleet_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libfleet_la_LIBADD = libcontrol.la libbase.la $(JANSSON_LIBS)

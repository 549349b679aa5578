noinst_LTLIBRARIES += libshare.la
libshare_la_SOURCES = \
	src/share/area.c \
	src/share/host.c \
	src/share/host_impl.h \
	src/share/host_members.c \
	src/share/host_slots.c \
	src/share/host_solo.c \
	src/share/host_stream.c \
	src/share/host_tell.c \
	src/share/link.c \
	src/share/place.c \
	src/share/place_impl.h \
	src/share/share.h \
	src/share/wire.c \
	src/share/wire_impl.h
libshare_la_CFLAGS = $(AM_CFLAGS)

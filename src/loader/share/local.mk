noinst_LTLIBRARIES += libshare.la
libshare_la_SOURCES = \
	src/loader/share/share.h \
	src/loader/share/share_area.c \
	src/loader/share/share_host.c src/loader/share/share_host_impl.h \
	src/loader/share/share_link.c \
	src/loader/share/share_members.c \
	src/loader/share/share_place.c src/loader/share/share_place_impl.h \
	src/loader/share/share_slots.c \
	src/loader/share/share_solo.c \
	src/loader/share/share_stream.c \
	src/loader/share/share_tell.c \
	src/loader/share/share_wire.c src/loader/share/share_wire_impl.h \
	src/loader/share/shared.c src/loader/share/shared.h \
	src/loader/share/shared_impl.h \
	src/loader/share/shared_area.c \
	src/loader/share/shared_ask.c \
	src/loader/share/shared_engine.c \
	src/loader/share/shared_join.c \
	src/loader/share/shared_link.c \
	src/loader/share/shared_run.c \
	src/loader/share/shared_serve.c src/loader/share/shared_serve.h
libshare_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

noinst_LTLIBRARIES += libshare.la
libshare_la_SOURCES = \
	src/loader/share/share.h \
	src/loader/share/share_area.c \
	src/loader/share/share_host.c src/loader/share/share_host_impl.h \
	src/loader/share/share_host_engine.c \
	src/loader/share/share_host_engine_impl.h \
	src/loader/share/share_host_members.c \
	src/loader/share/share_host_serve.c \
	src/loader/share/share_host_serve.h \
	src/loader/share/share_host_slots.c \
	src/loader/share/share_host_solo.c \
	src/loader/share/share_host_stream.c \
	src/loader/share/share_host_tell.c \
	src/loader/share/share_link.c \
	src/loader/share/share_member.c src/loader/share/share_member.h \
	src/loader/share/share_member_area.c \
	src/loader/share/share_member_ask.c \
	src/loader/share/share_member_impl.h \
	src/loader/share/share_member_join.c \
	src/loader/share/share_member_link.c \
	src/loader/share/share_place.c src/loader/share/share_place_impl.h \
	src/loader/share/share_run.c src/loader/share/share_run_impl.h \
	src/loader/share/share_wire.c src/loader/share/share_wire_impl.h
libshare_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

noinst_LTLIBRARIES += libcontrol.la
libcontrol_la_SOURCES = \
	src/common/control/control_place.c \
	src/common/control/control_place.h \
	src/common/control/line.c src/common/control/line.h \
	src/common/control/talk.c src/common/control/talk.h \
	src/common/control/unix_socket.c \
	src/common/control/unix_socket.h
libcontrol_la_CFLAGS = $(AM_CFLAGS)

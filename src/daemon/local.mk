noinst_LTLIBRARIES += libdaemon.la
libdaemon_la_SOURCES = \
	src/daemon/background.c \
	src/daemon/commands.c \
	src/daemon/daemon.c src/daemon/daemon.h \
	src/daemon/index.c \
	src/daemon/mount.h \
	src/daemon/keys.c \
	src/daemon/names.c \
	src/daemon/pages.c \
	src/daemon/plans.c \
	src/daemon/scan.c \
	src/daemon/source.c \
	src/daemon/status.c \
	src/daemon/warm.c
libdaemon_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libdaemon_la_LIBADD = libfs.la libprefetch.la libcache.la libctl.la libplan.la \
	liborigin.la libstore.la libbase.la

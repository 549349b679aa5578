noinst_LTLIBRARIES += libdaemon.la
libdaemon_la_SOURCES = \
	src/daemon/analysis.c \
	src/daemon/analysis_commands.c \
	src/daemon/analysis_impl.h \
	src/daemon/commands.c \
	src/daemon/compare.c \
	src/daemon/daemon.c src/daemon/daemon.h \
	src/daemon/epoch.c \
	src/daemon/held.c \
	src/daemon/events.c \
	src/daemon/index.c \
	src/daemon/limits.c \
	src/daemon/mount_impl.h \
	src/daemon/loaders.c \
	src/daemon/notify.c \
	src/daemon/memory.c \
	src/daemon/paths.c \
	src/daemon/peering.c \
	src/daemon/plans.c \
	src/daemon/process.c \
	src/daemon/readers.c \
	src/daemon/scan.c \
	src/daemon/status.c \
	src/daemon/troubles.c \
	src/daemon/warm.c
libdaemon_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libdaemon_la_LIBADD = libfs.la libpages.la libprefetch.la libcache.la \
	libctl.la libepochs.la libstandin.la libstack.la liblog.la libpeer.la \
	libmanifest.la libschedule.la liborigin.la libstore.la libbase.la

noinst_LTLIBRARIES += libdaemon.la
libdaemon_la_SOURCES = \
	src/mount/daemon/command_words.c src/mount/daemon/command_words.h \
	src/mount/daemon/compare.c \
	src/mount/daemon/control_commands.c \
	src/mount/daemon/control_conn.c src/mount/daemon/control_conn_impl.h \
	src/mount/daemon/control_server.c src/mount/daemon/control_server.h \
	src/mount/daemon/daemon.c src/mount/daemon/daemon.h \
	src/mount/daemon/daemon_memory.c \
	src/mount/daemon/daemon_process.c \
	src/mount/daemon/debug_status.c \
	src/mount/daemon/epoch_status.c \
	src/mount/daemon/latency_status.c \
	src/mount/daemon/epochs.c src/mount/daemon/epochs.h \
	src/mount/daemon/gauges.c src/mount/daemon/gauges.h \
	src/mount/daemon/held.c src/mount/daemon/held_notifier.c \
	src/mount/daemon/json_text.c src/mount/daemon/json_text.h \
	src/mount/daemon/loader_commands.c \
	src/mount/daemon/log.c src/mount/daemon/log.h \
	src/mount/daemon/log_cause.c src/mount/daemon/log_cause_impl.h \
	src/mount/daemon/log_events.c \
	src/mount/daemon/log_limit_impl.h \
	src/mount/daemon/log_line.c src/mount/daemon/log_line_impl.h \
	src/mount/daemon/mount_hooks.h \
	src/mount/daemon/mount_impl.h \
	src/mount/daemon/mount_limits.c \
	src/mount/daemon/mount_paths.c \
	src/mount/daemon/mount_status.c \
	src/mount/daemon/notify.c \
	src/mount/daemon/peering.c \
	src/mount/daemon/plan_commands.c \
	src/mount/daemon/source_scan.c \
	src/mount/daemon/trace_command.c \
	src/mount/daemon/troubles.c \
	src/mount/daemon/upgrade.c \
	src/mount/daemon/warming.c \
	src/mount/daemon/write_levels.c \
	src/mount/daemon/write_index.c
libdaemon_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libdaemon_la_LIBADD = libfs.la libplan.la libcache.la libcontrol.la \
	liblayer.la libpeer.la libnames.la libschedule.la libstore.la \
	libbase.la $(JANSSON_LIBS)

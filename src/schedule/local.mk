# The schedule is a library of its own: the loader has it without the manifest.
noinst_LTLIBRARIES += libschedule.la
libschedule_la_SOURCES = \
	src/schedule/change.c \
	src/schedule/config.c \
	src/schedule/lane.c src/schedule/lane_impl.h \
	src/schedule/schedule.h \
	src/schedule/state.c \
	src/schedule/stream.c

# The schedule is a library of its own: the loader has it without the manifest.
noinst_LTLIBRARIES += libschedule.la
libschedule_la_SOURCES = \
	src/plan/schedule.c src/plan/schedule.h src/plan/schedule_impl.h \
	src/plan/schedule_change.c \
	src/plan/schedule_config.c \
	src/plan/schedule_state.c \
	src/plan/schedule_stream.c

noinst_LTLIBRARIES += libplan.la
libplan_la_SOURCES = \
	src/plan/manifest.c src/plan/manifest.h \
	src/plan/manifest_change.c \
	src/plan/manifest_file.c \
	src/plan/manifest_impl.h \
	src/plan/manifest_node.c \
	src/plan/plan.h
libplan_la_LIBADD = libschedule.la

noinst_LTLIBRARIES += libplan.la
libplan_la_SOURCES = \
	src/plan/manifest.c src/plan/manifest.h \
	src/plan/manifest_change.c \
	src/plan/manifest_file.c \
	src/plan/manifest_impl.h \
	src/plan/manifest_node.c \
	src/plan/plan.h \
	src/plan/schedule.h

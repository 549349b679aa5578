noinst_LTLIBRARIES += libplan.la
libplan_la_SOURCES = \
	src/mount/plan/plan.c src/mount/plan/plan.h \
	src/mount/plan/plan_impl.h \
	src/mount/plan/plan_follow.c \
	src/mount/plan/plan_note.c \
	src/mount/plan/plan_order.c src/mount/plan/plan_order_impl.h \
	src/mount/plan/plan_pace.c \
	src/mount/plan/plan_rate.c \
	src/mount/plan/prefetch.c src/mount/plan/prefetch.h
libplan_la_CFLAGS = $(AM_CFLAGS)

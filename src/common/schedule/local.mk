noinst_LTLIBRARIES += libschedule.la
libschedule_la_SOURCES = \
	src/common/schedule/bucket.c src/common/schedule/bucket.h \
	src/common/schedule/lane.c src/common/schedule/lane_impl.h \
	src/common/schedule/memo.c src/common/schedule/memo.h \
	src/common/schedule/mix.c src/common/schedule/mix.h \
	src/common/schedule/permute.c src/common/schedule/permute.h \
	src/common/schedule/schedule.h \
	src/common/schedule/schedule_change.c \
	src/common/schedule/schedule_config.c \
	src/common/schedule/schedule_slots.c \
	src/common/schedule/schedule_state.c
libschedule_la_CFLAGS = $(AM_CFLAGS)

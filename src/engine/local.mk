noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = \
	src/engine/damage.c \
	src/engine/direct.c \
	src/engine/echo.c \
	src/engine/engine.c \
	src/engine/engine.h \
	src/engine/engine_impl.h \
	src/engine/entry.c \
	src/engine/make.c \
	src/engine/make_impl.h \
	src/engine/meter.c \
	src/engine/meter.h \
	src/engine/next.c \
	src/engine/planner.c \
	src/engine/reader.c \
	src/engine/reader_life.c \
	src/engine/reader_next.c \
	src/engine/room.c \
	src/engine/state.c \
	src/engine/stats.c \
	src/engine/watch.c \
	src/engine/worker.c
libengine_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

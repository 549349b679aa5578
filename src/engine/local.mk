noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = \
	src/engine/direct.c \
	src/engine/echo.c \
	src/engine/echo_impl.h \
	src/engine/engine.c \
	src/engine/engine.h \
	src/engine/engine_impl.h \
	src/engine/make.c \
	src/engine/make_impl.h \
	src/engine/next.c \
	src/engine/open.c \
	src/engine/planner.c \
	src/engine/planner_impl.h \
	src/engine/read_impl.h \
	src/engine/reader.c \
	src/engine/reader_impl.h \
	src/engine/reader_life.c \
	src/engine/reader_next.c \
	src/engine/state.c \
	src/engine/stats.c \
	src/engine/watch.c \
	src/engine/worker.c \
	src/engine/workers_impl.h
libengine_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

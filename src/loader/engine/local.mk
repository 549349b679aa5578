noinst_LTLIBRARIES += libengine.la
libengine_la_SOURCES = \
	src/loader/engine/auto.c src/loader/engine/auto.h \
	src/loader/engine/auto_impl.h \
	src/loader/engine/auto_fetch.c \
	src/loader/engine/auto_row.c \
	src/loader/engine/batch.c src/loader/engine/batch.h \
	src/loader/engine/budget.c src/loader/engine/budget_impl.h \
	src/loader/engine/damage.c src/loader/engine/damage_impl.h \
	src/loader/engine/direct_read.c \
	src/loader/engine/echo_factor.c src/loader/engine/echo_factor_impl.h \
	src/loader/engine/echo_log.c src/loader/engine/echo_log.h \
	src/loader/engine/engine.c src/loader/engine/engine.h \
	src/loader/engine/engine_impl.h src/loader/engine/engine_parts_impl.h \
	src/loader/engine/engine_bucket.c \
	src/loader/engine/engine_bucket.h \
	src/loader/engine/engine_mix.c src/loader/engine/engine_mix.h \
	src/loader/engine/engine_next.c \
	src/loader/engine/engine_open.c \
	src/loader/engine/engine_state.c \
	src/loader/engine/engine_stats.c \
	src/loader/engine/idle_files.c src/loader/engine/idle_files_impl.h \
	src/loader/engine/make_fields.c \
	src/loader/engine/make_fields_impl.h \
	src/loader/engine/make_serving.c \
	src/loader/engine/make_serving_impl.h \
	src/loader/engine/map_fields.c \
	src/loader/engine/meter.c src/loader/engine/meter.h \
	src/loader/engine/originals.c src/loader/engine/originals_impl.h \
	src/loader/engine/outcome.c src/loader/engine/outcome_impl.h \
	src/loader/engine/planner.c src/loader/engine/planner_impl.h \
	src/loader/engine/pool_impl.h \
	src/loader/engine/pulled.c src/loader/engine/pulled_impl.h \
	src/loader/engine/reader.c src/loader/engine/reader_impl.h \
	src/loader/engine/reader_files_impl.h \
	src/loader/engine/reader_life.c \
	src/loader/engine/reader_next.c \
	src/loader/engine/reader_parts.c \
	src/loader/engine/sample.c src/loader/engine/sample.h \
	src/loader/engine/steps.c src/loader/engine/steps_impl.h \
	src/loader/engine/volumes.c src/loader/engine/volumes.h \
	src/loader/engine/watchdog.c \
	src/loader/engine/workers.c src/loader/engine/workers_impl.h
libengine_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off

noinst_LTLIBRARIES += libcache.la
libcache_la_SOURCES = \
	src/mount/cache/backlog.c src/mount/cache/backlog.h \
	src/mount/cache/cache.c src/mount/cache/cache.h \
	src/mount/cache/cache_impl.h \
	src/mount/cache/cache_item.c \
	src/mount/cache/cache_jobs.c src/mount/cache/cache_jobs_impl.h \
	src/mount/cache/cache_plan.c \
	src/mount/cache/cache_planned.c \
	src/mount/cache/cache_read.c \
	src/mount/cache/cache_view.c src/mount/cache/cache_view.h \
	src/mount/cache/depth.c src/mount/cache/depth.h \
	src/mount/cache/dispatch.c \
	src/mount/cache/fetch.c src/mount/cache/fetch_impl.h \
	src/mount/cache/fill.c src/mount/cache/fill_impl.h \
	src/mount/cache/fill_part.c src/mount/cache/fill_part_impl.h \
	src/mount/cache/fill_publish.c \
	src/mount/cache/fill_serve.c \
	src/mount/cache/fill_provider.c src/mount/cache/fill_provider_impl.h \
	src/mount/cache/flight.c src/mount/cache/flight.h \
	src/mount/cache/staging_room.c
libcache_la_CFLAGS = $(AM_CFLAGS)

noinst_LTLIBRARIES += libcache.la
libcache_la_SOURCES = \
	src/cache/cache.c src/cache/cache.h src/cache/cache_impl.h \
	src/cache/dispatch.c \
	src/cache/jobs.c src/cache/jobs_impl.h \
	src/cache/fetch.c src/cache/fetch_impl.h \
	src/cache/fill.c src/cache/fill_impl.h \
	src/cache/item.c \
	src/cache/part.c src/cache/part_impl.h \
	src/cache/plan.c \
	src/cache/planned.c \
	src/cache/publish.c \
	src/cache/read.c \
	src/cache/room.c \
	src/cache/serve.c \
	src/cache/source.c src/cache/source_impl.h
libcache_la_LIBADD = libflight.la

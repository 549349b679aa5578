noinst_LTLIBRARIES += libcache.la
libcache_la_SOURCES = \
	src/cache/cache.c src/cache/cache.h \
	src/cache/depth.c src/cache/depth.h \
	src/cache/fetch.c \
	src/cache/fill.c src/cache/fill.h \
	src/cache/life.c \
	src/cache/part.c src/cache/part.h \
	src/cache/planned.c \
	src/cache/publish.c

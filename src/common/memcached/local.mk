noinst_LTLIBRARIES += libmemcached.la
libmemcached_la_SOURCES = \
	src/common/memcached/memcached_address.c \
	src/common/memcached/memcached_address.h \
	src/common/memcached/memcached_ask.c \
	src/common/memcached/memcached_ask.h \
	src/common/memcached/memcached_meta.c \
	src/common/memcached/memcached_meta.h \
	src/common/memcached/memcached_remote.c \
	src/common/memcached/memcached_remote.h \
	src/common/memcached/memcached_server.c \
	src/common/memcached/memcached_server.h \
	src/common/memcached/memcached_wire.c \
	src/common/memcached/memcached_wire.h
libmemcached_la_CFLAGS = $(AM_CFLAGS)

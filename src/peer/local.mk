# Items in the memory of other hosts, by memcached.
noinst_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = \
	src/peer/owner.c \
	src/peer/peers.c src/peer/peer.h
libpeer_la_LIBADD = libbase.la

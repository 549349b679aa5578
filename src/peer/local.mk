# Items in the memory of other hosts, by memcached.
noinst_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = \
	src/peer/address.c src/peer/address_impl.h \
	src/peer/host.c src/peer/host_impl.h \
	src/peer/inquiry.c src/peer/inquiry_impl.h \
	src/peer/lease.c src/peer/lease_impl.h \
	src/peer/meta.c src/peer/meta_impl.h \
	src/peer/owner.c \
	src/peer/peers.c src/peer/peer.h \
	src/peer/push.c src/peer/push_impl.h \
	src/peer/read.c src/peer/read_impl.h \
	src/peer/server.c src/peer/server_impl.h \
	src/peer/trust.c src/peer/trust_impl.h \
	src/peer/unit.c src/peer/unit_impl.h \
	src/peer/wire.c src/peer/wire_impl.h
libpeer_la_LIBADD = libformat.la libbase.la

noinst_LTLIBRARIES += libpeer.la
libpeer_la_SOURCES = \
	src/origin/peer/peer.h \
	src/origin/peer/peer_host.c src/origin/peer/peer_host_impl.h \
	src/origin/peer/peer_inquiry.c src/origin/peer/peer_inquiry_impl.h \
	src/origin/peer/peer_lease.c src/origin/peer/peer_lease_impl.h \
	src/origin/peer/peer_owner.c \
	src/origin/peer/peer_push.c src/origin/peer/peer_push_impl.h \
	src/origin/peer/peer_read.c src/origin/peer/peer_read_impl.h \
	src/origin/peer/peer_trust.c src/origin/peer/peer_trust_impl.h \
	src/origin/peer/peer_unit.c src/origin/peer/peer_unit_impl.h \
	src/origin/peer/peers.c
libpeer_la_CFLAGS = $(AM_CFLAGS)
libpeer_la_LIBADD = libmemcached.la libformat.la libbase.la

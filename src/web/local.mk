# HTTP: the only user of libcurl, OpenSSL and expat.
if HAVE_REMOTE
noinst_LTLIBRARIES += libweb.la
libweb_la_SOURCES = \
	src/web/bytes.c src/web/bytes.h \
	src/web/creds.c src/web/creds.h \
	src/web/creds_fetch.c src/web/creds_fetch_impl.h \
	src/web/creds_file.c \
	src/web/creds_role.c \
	src/web/loops.c src/web/loops.h \
	src/web/head.c src/web/head.h \
	src/web/json.c src/web/json.h \
	src/web/loop.c src/web/loop_impl.h \
	src/web/pace.c \
	src/web/sign.c src/web/sign.h \
	src/web/suites.c \
	src/web/throttle.c src/web/throttle.h \
	src/web/transfer.c \
	src/web/url.c src/web/url.h \
	src/web/web.h \
	src/web/xml.c src/web/xml.h
libweb_la_CFLAGS = $(AM_CFLAGS) $(REMOTE_CFLAGS)
libweb_la_LIBADD = libbase.la $(REMOTE_LIBS)
endif

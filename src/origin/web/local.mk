# HTTP: the only user of libcurl, OpenSSL and expat.
if HAVE_REMOTE
noinst_LTLIBRARIES += libweb.la
libweb_la_SOURCES = \
	src/origin/web/body.c src/origin/web/body.h \
	src/origin/web/creds.c src/origin/web/creds.h \
	src/origin/web/creds_fetch.c src/origin/web/creds_fetch_impl.h \
	src/origin/web/creds_file.c \
	src/origin/web/creds_role.c \
	src/origin/web/http_head.c src/origin/web/http_head.h \
	src/origin/web/pace.c \
	src/origin/web/sign.c src/origin/web/sign.h \
	src/origin/web/suites.c \
	src/origin/web/throttle.c src/origin/web/throttle.h \
	src/origin/web/transfer.c \
	src/origin/web/url.c src/origin/web/url.h \
	src/origin/web/web.h \
	src/origin/web/web_loop.c src/origin/web/web_loop_impl.h \
	src/origin/web/web_loops.c src/origin/web/web_loops.h \
	src/origin/web/xml.c src/origin/web/xml.h
libweb_la_CFLAGS = $(AM_CFLAGS) $(REMOTE_CFLAGS)
libweb_la_LIBADD = libbase.la $(REMOTE_LIBS)
endif

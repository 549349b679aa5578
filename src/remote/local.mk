# http(s):// and s3:// sources.
if HAVE_REMOTE
noinst_LTLIBRARIES += libremote.la
libremote_la_SOURCES = \
	src/remote/answer.c \
	src/remote/ask.c \
	src/remote/call.c \
	src/remote/fetch.c \
	src/remote/index.c \
	src/remote/list.c src/remote/list_impl.h \
	src/remote/list_page.c src/remote/list_range_impl.h \
	src/remote/look.c \
	src/remote/names.c src/remote/names_impl.h \
	src/remote/page.c src/remote/page_impl.h \
	src/remote/site.c src/remote/site_impl.h \
	src/remote/read.c \
	src/remote/request.c \
	src/remote/remote.c src/remote/remote.h src/remote/remote_impl.h \
	src/remote/split.c
libremote_la_LIBADD = libweb.la liborigin.la libbase.la
endif

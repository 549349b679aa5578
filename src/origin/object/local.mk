if HAVE_REMOTE
noinst_LTLIBRARIES += libobject.la
libobject_la_SOURCES = \
	src/origin/object/call.c \
	src/origin/object/call_verdict.c \
	src/origin/object/fetch_object.c \
	src/origin/object/http_listing.c \
	src/origin/object/http_names.c src/origin/object/http_names_impl.h \
	src/origin/object/http_sizes.c \
	src/origin/object/object.c src/origin/object/object.h \
	src/origin/object/object_impl.h \
	src/origin/object/object_probe.c \
	src/origin/object/object_read.c \
	src/origin/object/object_shared.c \
	src/origin/object/s3_list.c src/origin/object/s3_list_impl.h \
	src/origin/object/s3_list_page.c \
	src/origin/object/s3_look.c \
	src/origin/object/s3_page.c src/origin/object/s3_page_impl.h \
	src/origin/object/s3_range_impl.h \
	src/origin/object/s3_split.c \
	src/origin/object/site.c src/origin/object/site_impl.h
libobject_la_CFLAGS = $(AM_CFLAGS)
libobject_la_LIBADD = libweb.la libbase.la
endif

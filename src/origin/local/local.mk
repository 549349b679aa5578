noinst_LTLIBRARIES += liblocal.la
liblocal_la_SOURCES = \
	src/origin/origin.h src/origin/provider.h \
	src/origin/local/late_answers.c src/origin/local/late_answers.h \
	src/origin/local/posix.c src/origin/local/posix_impl.h \
	src/origin/local/posix_buffer.c \
	src/origin/local/posix_file.c \
	src/origin/local/posix_meta.c \
	src/origin/local/posix_now.c \
	src/origin/local/posix_read.c src/origin/local/posix_read_impl.h \
	src/origin/local/posix_root.c \
	src/origin/local/synthetic.c
liblocal_la_CFLAGS = $(AM_CFLAGS)
liblocal_la_LIBADD = libbase.la

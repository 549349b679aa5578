noinst_LTLIBRARIES += liborigin.la
liborigin_la_SOURCES = \
	src/origin/any_impl.h \
	src/origin/fault.c \
	src/origin/late.c src/origin/late_impl.h \
	src/origin/named.c src/origin/named_impl.h \
	src/origin/named_text.c \
	src/origin/origin.h \
	src/origin/posix.c src/origin/posix_impl.h \
	src/origin/posix_buffer.c \
	src/origin/posix_file.c \
	src/origin/posix_meta.c \
	src/origin/posix_read.c src/origin/posix_read_impl.h \
	src/origin/posix_root.c \
	src/origin/retry.c src/origin/retry_impl.h \
	src/origin/retry_answer.c \
	src/origin/retry_attempt.c src/origin/retry_health.c \
	src/origin/synthetic.c
liborigin_la_LIBADD = libbase.la

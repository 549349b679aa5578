noinst_LTLIBRARIES += liblayer.la
liblayer_la_SOURCES = \
	src/origin/layer/fault.c \
	src/origin/layer/given_levels.c \
	src/origin/layer/given_names.c \
	src/origin/layer/layer.c src/origin/layer/layer_impl.h \
	src/origin/layer/levels.c \
	src/origin/layer/named.c src/origin/layer/named_impl.h \
	src/origin/layer/named_text.c \
	src/origin/layer/reachable.c \
	src/origin/layer/retry.c src/origin/layer/retry_impl.h \
	src/origin/layer/retry_answer.c \
	src/origin/layer/retry_attempt.c \
	src/origin/layer/retry_health.c \
	src/origin/layer/stack.c src/origin/layer/stack.h \
	src/origin/layer/stack_impl.h
liblayer_la_CFLAGS = $(AM_CFLAGS)
liblayer_la_LIBADD = liblocal.la libformat.la libbase.la
if HAVE_REMOTE
liblayer_la_LIBADD += libobject.la
endif

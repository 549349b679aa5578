noinst_LTLIBRARIES += libservice.la
libservice_la_SOURCES = \
	src/loader/service/service_board.c \
	src/loader/service/service_board.h \
	src/loader/service/service_call.c \
	src/loader/service/service_call.h \
	src/loader/service/service_conf.c \
	src/loader/service/service_conf.h \
	src/loader/service/service_names.c \
	src/loader/service/service_names.h \
	src/loader/service/service_print.c \
	src/loader/service/service_print.h \
	src/loader/service/service_print_impl.h \
	src/loader/service/service_range.c \
	src/loader/service/service_range.h \
	src/loader/service/service_secret.c \
	src/loader/service/service_secret.h \
	src/loader/service/service_state.c \
	src/loader/service/service_state.h \
	src/loader/service/service_value.c \
	src/loader/service/service_value.h
libservice_la_CFLAGS = $(AM_CFLAGS)
libservice_la_LIBADD = libmemcached.la

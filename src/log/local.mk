noinst_LTLIBRARIES += liblog.la
liblog_la_SOURCES = \
	src/log/log.c src/log/log.h src/log/log_limit_impl.h \
	src/log/log_cause.c src/log/log_cause_impl.h \
	src/log/log_line.c src/log/log_line_impl.h
liblog_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

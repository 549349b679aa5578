noinst_LTLIBRARIES += libwork.la
libwork_la_SOURCES = \
	src/loader/work/work.c src/loader/work/work.h \
	src/loader/work/work_claim.c \
	src/loader/work/work_impl.h \
	src/loader/work/work_jobs.c \
	src/loader/work/work_make.c
libwork_la_CFLAGS = $(AM_CFLAGS)

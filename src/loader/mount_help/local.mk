noinst_LTLIBRARIES += libmounthelp.la
libmounthelp_la_SOURCES = \
	src/loader/mount_help/help.c src/loader/mount_help/help_impl.h \
	src/loader/mount_help/help_answer.c \
	src/loader/mount_help/help_answer_impl.h \
	src/loader/mount_help/help_ask.c \
	src/loader/mount_help/help_find.c \
	src/loader/mount_help/help_plan.c \
	src/loader/mount_help/help_rates.c \
	src/loader/mount_help/help_tell.c \
	src/loader/mount_help/help_work.c \
	src/loader/mount_help/mount_help.h
libmounthelp_la_CFLAGS = $(AM_CFLAGS)
libmounthelp_la_LIBADD = libcontrol.la

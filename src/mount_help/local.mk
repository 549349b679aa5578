noinst_LTLIBRARIES += libmounthelp.la
libmounthelp_la_SOURCES = \
	src/mount_help/answer.c \
	src/mount_help/answer_impl.h \
	src/mount_help/ask.c \
	src/mount_help/find.c \
	src/mount_help/help.c \
	src/mount_help/help_impl.h \
	src/mount_help/mount_help.h \
	src/mount_help/plan.c \
	src/mount_help/rates.c \
	src/mount_help/tell.c \
	src/mount_help/work.c
libmounthelp_la_CFLAGS = $(AM_CFLAGS)
libmounthelp_la_LIBADD = libtalk.la

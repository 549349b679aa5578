# Only the command needs it, not the library.
noinst_LTLIBRARIES += librecode.la
librecode_la_SOURCES = \
	src/loader/recode/recode.c src/loader/recode/recode.h \
	src/loader/recode/recode_impl.h \
	src/loader/recode/recode_list.c \
	src/loader/recode/recode_record.c \
	src/loader/recode/recode_report.c \
	src/loader/recode/recode_tar.c \
	src/loader/recode/recode_try.c \
	src/loader/recode/recode_unit.c
librecode_la_CFLAGS = $(AM_CFLAGS)
librecode_la_LIBADD = libimage.la libformat.la libbase.la

noinst_LTLIBRARIES += libsubject.la
libsubject_la_SOURCES = \
	src/analysis/subject/kept_pages.c \
	src/analysis/subject/kept_pages_impl.h \
	src/analysis/subject/stand_in.c src/analysis/subject/stand_in.h \
	src/analysis/subject/subject.c src/analysis/subject/subject.h \
	src/analysis/subject/subject_impl.h \
	src/analysis/subject/subject_commands.c \
	src/analysis/subject/subject_read.c \
	src/analysis/subject/subject_readers.c \
	src/analysis/subject/subject_readers_impl.h
libsubject_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libsubject_la_LIBADD = libdaemon.la $(JANSSON_LIBS) -lm

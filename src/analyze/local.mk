noinst_LTLIBRARIES += libanalyze.la
libanalyze_la_SOURCES = \
	src/analyze/analyze.h \
	src/analyze/busy.c src/analyze/busy_impl.h \
	src/analyze/copied.c src/analyze/copied_impl.h \
	src/analyze/copy.c \
	src/analyze/cover.c src/analyze/cover_impl.h \
	src/analyze/html.c \
	src/analyze/late.c src/analyze/late_impl.h \
	src/analyze/measure.c \
	src/analyze/names.c src/analyze/names_impl.h \
	src/analyze/plots.c src/analyze/html_impl.h \
	src/analyze/predict.c \
	src/analyze/profile.c \
	src/analyze/repeats.c src/analyze/repeats_impl.h \
	src/analyze/report.c \
	src/analyze/run.c src/analyze/run_impl.h \
	src/analyze/segment.c src/analyze/segment_impl.h \
	src/analyze/trainer.c src/analyze/trainer_impl.h \
	src/analyze/unit.c src/analyze/unit_impl.h \
	src/analyze/verdict.c \
	src/analyze/waits.c src/analyze/waits_impl.h
libanalyze_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libanalyze_la_LIBADD = libmodel.la libctl.la libstandin.la libbase.la \
	$(JANSSON_LIBS) -lm

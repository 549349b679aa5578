noinst_LTLIBRARIES += libstudy.la
libstudy_la_SOURCES = \
	src/analysis/study/busy_process.c \
	src/analysis/study/busy_process_impl.h \
	src/analysis/study/copy_rate.c src/analysis/study/copy_rate_impl.h \
	src/analysis/study/copy_source.c \
	src/analysis/study/cover.c src/analysis/study/cover_impl.h \
	src/analysis/study/late.c src/analysis/study/late_impl.h \
	src/analysis/study/measure.c \
	src/analysis/study/model.c src/analysis/study/model.h \
	src/analysis/study/predict.c \
	src/analysis/study/profile.c \
	src/analysis/study/repeats.c src/analysis/study/repeats_impl.h \
	src/analysis/study/report.c \
	src/analysis/study/report_html.c \
	src/analysis/study/report_html_impl.h \
	src/analysis/study/report_plots.c \
	src/analysis/study/sample_unit.c \
	src/analysis/study/sample_unit_impl.h \
	src/analysis/study/segment.c src/analysis/study/segment_impl.h \
	src/analysis/study/source_files.c \
	src/analysis/study/source_files_impl.h \
	src/analysis/study/study.h \
	src/analysis/study/study_run.c src/analysis/study/study_run_impl.h \
	src/analysis/study/trainer.c src/analysis/study/trainer_impl.h \
	src/analysis/study/verdict.c \
	src/analysis/study/waits.c src/analysis/study/waits_impl.h
libstudy_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libstudy_la_LIBADD = libfleet.la libsubject.la libbase.la $(JANSSON_LIBS) -lm

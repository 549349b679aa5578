# Experiments with data echoing (doc/echoing.md): a trainer and its driver;
# built, not installed.
EXTRA_DIST += experiments/matrix.py experiments/plot.py \
	experiments/plots.py experiments/report.py experiments/results.py \
	experiments/run.py experiments/store.py experiments/tables.py \
	experiments/results/runs.jsonl

if HAVE_BLAS
noinst_PROGRAMS += experiments/echo-train
experiments_echo_train_SOURCES = experiments/echo_train.c \
	experiments/lm.c experiments/lm.h \
	experiments/model.c experiments/model.h \
	experiments/options.c experiments/options.h \
	tools/config_options.c tools/config_options.h $(nn_sources)
experiments_echo_train_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS) -ftree-vectorize
experiments_echo_train_LDADD = librefrain.la libbase.la $(BLAS_LIBS) -lm
endif

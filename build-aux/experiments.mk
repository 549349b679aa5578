# experiments/ (doc/echoing.md) is in the repository, but not in the archives
# that `make dist` makes: nothing here is distributed but these rules, which the
# archives' Makefile.in holds too.
if EXPERIMENTS
nn_sources = experiments/nn.c experiments/nn.h experiments/nn_impl.h \
	experiments/nn_layer.c experiments/nn_new.c \
	experiments/team.c experiments/team.h

noinst_PROGRAMS += experiments/echo-train
nodist_experiments_echo_train_SOURCES = experiments/echo_train.c \
	experiments/lm.c experiments/lm.h \
	experiments/model.c experiments/model.h \
	experiments/options.c experiments/options.h \
	tools/config_options.c tools/config_options.h $(nn_sources)
experiments_echo_train_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS) -ftree-vectorize
experiments_echo_train_LDADD = librefrain.la libbase.la $(BLAS_LIBS) -lm

TESTS += experiments/check.sh
if HAVE_CHECK
experiments_tests = experiments/test_lm experiments/test_nn
check_PROGRAMS += $(experiments_tests)
TESTS += $(experiments_tests)
nodist_experiments_test_nn_SOURCES = experiments/test_nn.c $(nn_sources)
experiments_test_nn_CPPFLAGS = $(AM_CPPFLAGS) -DNN_DOUBLE
experiments_test_nn_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS)
experiments_test_nn_LDADD = $(unit_libs) $(BLAS_LIBS)
nodist_experiments_test_lm_SOURCES = experiments/test_lm.c \
	experiments/lm.c experiments/lm.h
experiments_test_lm_CPPFLAGS = $(AM_CPPFLAGS) -DNN_DOUBLE
experiments_test_lm_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS)
experiments_test_lm_LDADD = $(unit_libs) $(BLAS_LIBS)
endif
endif

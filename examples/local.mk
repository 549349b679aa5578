# Programs that stand on the public header alone; built, not installed.
check_PROGRAMS += examples/minimal
examples_minimal_SOURCES = examples/minimal.c
examples_minimal_LDADD = librefrain.la

nn_sources = examples/nn.c examples/nn.h examples/nn_impl.h \
	examples/nn_layer.c examples/nn_new.c examples/team.c examples/team.h

# Vectors are most of what is not the BLAS's.
if HAVE_BLAS
noinst_PROGRAMS += examples/train-cnn
examples_train_cnn_SOURCES = examples/train-cnn.c $(nn_sources)
examples_train_cnn_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS) -ftree-vectorize
examples_train_cnn_LDADD = librefrain.la $(BLAS_LIBS) -lm

# A search whose jobs, each a train-cnn, share their batches.
noinst_PROGRAMS += examples/search-cnn
examples_search_cnn_SOURCES = examples/search-cnn.c
endif

# PyTorch, with its own loader and with ours; a search whose jobs share batches.
EXTRA_DIST += examples/search.py examples/train.py

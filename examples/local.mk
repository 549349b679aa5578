# Programs that stand on the public header alone; built, not installed.
check_PROGRAMS += examples/minimal examples/train
examples_minimal_SOURCES = examples/minimal.c
examples_minimal_LDADD = librefrain.la
examples_train_SOURCES = examples/train.c
examples_train_LDADD = librefrain.la -lm

# PyTorch, with its own loader and with ours; a search whose jobs share batches.
EXTRA_DIST += examples/search.py examples/train.py

# A cluster of Slurm.
EXTRA_DIST += examples/slurm/README.md examples/slurm/epilog \
	examples/slurm/prolog examples/slurm/refrain-jobs

# Kubernetes, and Fluid in it.
EXTRA_DIST += examples/kubernetes/README.md \
	examples/kubernetes/daemonset.yaml examples/kubernetes/reader.yaml \
	examples/kubernetes/sidecar.yaml examples/kubernetes/fluid/README.md \
	examples/kubernetes/fluid/Containerfile \
	examples/kubernetes/fluid/dataset.yaml \
	examples/kubernetes/fluid/profile.yaml \
	examples/kubernetes/fluid/refrain-fluid

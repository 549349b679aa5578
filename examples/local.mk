# Programs that stand on the public header alone; built, not installed.
nn_sources = examples/nn.c examples/nn.h examples/nn_impl.h \
	examples/nn_layer.c examples/nn_new.c examples/team.c examples/team.h

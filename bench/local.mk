# Measuring: programs and scripts that are never installed.
noinst_PROGRAMS += bench/epoch-reader
bench_epoch_reader_SOURCES = \
	bench/epoch_reader.c \
	bench/file_list.c bench/file_list.h \
	bench/read_file.c bench/read_file.h
bench_epoch_reader_LDADD = libbase.la
EXTRA_DIST += bench/lru-model

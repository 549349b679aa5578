noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	src/dataset/dataset.c \
	src/dataset/dataset.h \
	src/dataset/folder.c \
	src/dataset/index.c \
	src/dataset/index_impl.h \
	src/dataset/list.c \
	src/dataset/look.c \
	src/dataset/look_impl.h \
	src/dataset/query.c \
	src/dataset/raw.c \
	src/dataset/table.c \
	src/dataset/table_impl.h \
	src/dataset/tar.c \
	src/dataset/tarfile.c \
	src/dataset/tarfile_impl.h

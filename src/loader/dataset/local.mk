noinst_LTLIBRARIES += libdataset.la
libdataset_la_SOURCES = \
	src/loader/dataset/annotations_open.c \
	src/loader/dataset/dataset_annotated.c \
	src/loader/dataset/annotations.c src/loader/dataset/annotations.h \
	src/loader/dataset/annotations_impl.h \
	src/loader/dataset/annotations_saved.c \
	src/loader/dataset/annotations_parse.c \
	src/loader/dataset/json_file.c src/loader/dataset/json_file_impl.h \
	src/loader/dataset/rows.c src/loader/dataset/rows.h \
	src/loader/dataset/dataset.c src/loader/dataset/dataset.h \
	src/loader/dataset/dataset_folder.c \
	src/loader/dataset/dataset_catalogue.c \
	src/loader/dataset/dataset_catalogue_impl.h \
	src/loader/dataset/dataset_lacking.c \
	src/loader/dataset/dataset_list.c \
	src/loader/dataset/dataset_look.c \
	src/loader/dataset/dataset_look_impl.h \
	src/loader/dataset/dataset_members.c \
	src/loader/dataset/dataset_npy.c \
	src/loader/dataset/dataset_members_impl.h \
	src/loader/dataset/dataset_query.c \
	src/loader/dataset/dataset_raw.c \
	src/loader/dataset/dataset_several.c \
	src/loader/dataset/dataset_several_impl.h \
	src/loader/dataset/dataset_table.c \
	src/loader/dataset/dataset_table_impl.h \
	src/loader/dataset/dataset_tar.c \
	src/loader/dataset/dataset_tokens.c \
	src/loader/dataset/dataset_windows.c \
	src/loader/dataset/npy.c src/loader/dataset/npy.h \
	src/loader/dataset/tarfile.c src/loader/dataset/tarfile_impl.h
libdataset_la_CFLAGS = $(AM_CFLAGS)

noinst_LTLIBRARIES += libnames.la
libnames_la_SOURCES = \
	src/mount/names/inode.c src/mount/names/inode.h \
	src/mount/names/manifest.c src/mount/names/manifest.h \
	src/mount/names/manifest_change.c \
	src/mount/names/manifest_directory.c \
	src/mount/names/manifest_file.c \
	src/mount/names/manifest_recover.c \
	src/mount/names/manifest_serve.c \
	src/mount/names/names_trail.c src/mount/names/names_trail_impl.h \
	src/mount/names/node.c src/mount/names/node_impl.h \
	src/mount/names/node_ref.c \
	src/mount/names/tree.c src/mount/names/tree.h \
	src/mount/names/tree_impl.h \
	src/mount/names/tree_deep.c \
	src/mount/names/tree_event.c \
	src/mount/names/tree_name.c \
	src/mount/names/tree_refresh.c \
	src/mount/names/tree_walk.c
libnames_la_CFLAGS = $(AM_CFLAGS)

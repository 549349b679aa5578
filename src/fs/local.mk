noinst_LTLIBRARIES += libfs.la
libfs_la_SOURCES = \
	src/fs/fs.c src/fs/fs.h src/fs/fs_impl.h \
	src/fs/inode.c src/fs/inode.h \
	src/fs/interrupt.c \
	src/fs/mountpoint.c \
	src/fs/ops.c \
	src/fs/read.c \
	src/fs/readdir.c \
	src/fs/tree.c src/fs/tree.h src/fs/tree_impl.h \
	src/fs/tree_name.c \
	src/fs/tree_refresh.c \
	src/fs/tree_walk.c
libfs_la_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
libfs_la_LIBADD = $(FUSE3_LIBS)

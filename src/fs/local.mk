noinst_LTLIBRARIES += libfs.la
libfs_la_SOURCES = \
	src/fs/follow.c \
	src/fs/fs.c \
	src/fs/fs.h \
	src/fs/fs_impl.h \
	src/fs/gather.c \
	src/fs/gather_impl.h \
	src/fs/interrupt.c \
	src/fs/journal.c \
	src/fs/known.c \
	src/fs/mountpoint.c \
	src/fs/ops.c \
	src/fs/poll.c \
	src/fs/read.c \
	src/fs/reader.c \
	src/fs/readdir.c \
	src/fs/receive.c \
	src/fs/session.c \
	src/fs/session.h \
	src/fs/session_impl.h \
	src/fs/takeover.c \
	src/fs/watch.c \
	src/fs/worker.c
libfs_la_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
libfs_la_LIBADD = libtree.la $(FUSE3_LIBS)

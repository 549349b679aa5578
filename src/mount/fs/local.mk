# The FUSE front: the only user of libfuse.
noinst_LTLIBRARIES += libfs.la
libfs_la_SOURCES = \
	src/mount/fs/agent.c src/mount/fs/agent.h \
	src/mount/fs/fs.c src/mount/fs/fs.h src/mount/fs/fs_impl.h \
	src/mount/fs/fs_contexts.h \
	src/mount/fs/fs_follow.c \
	src/mount/fs/fs_gather.c src/mount/fs/fs_gather_impl.h \
	src/mount/fs/fs_interrupt.c \
	src/mount/fs/fs_journal.c \
	src/mount/fs/fs_known.c \
	src/mount/fs/fs_notify.c \
	src/mount/fs/fs_ops.c \
	src/mount/fs/fs_poll.c \
	src/mount/fs/fs_read.c \
	src/mount/fs/fs_readdir.c \
	src/mount/fs/fs_receive.c \
	src/mount/fs/fs_strike.c \
	src/mount/fs/fs_session.c src/mount/fs/fs_session.h \
	src/mount/fs/fs_session_impl.h \
	src/mount/fs/fs_takeover.c \
	src/mount/fs/fs_worker.c \
	src/mount/fs/mountpoint.c \
	src/mount/fs/pages.c src/mount/fs/pages.h
libfs_la_CFLAGS = $(AM_CFLAGS) $(FUSE3_CFLAGS)
libfs_la_LIBADD = libnames.la $(FUSE3_LIBS)

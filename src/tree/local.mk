noinst_LTLIBRARIES += libtree.la
libtree_la_SOURCES = \
	src/tree/deep.c \
	src/tree/event.c \
	src/tree/inode.c \
	src/tree/inode.h \
	src/tree/name.c \
	src/tree/refresh.c \
	src/tree/tree.c \
	src/tree/tree.h \
	src/tree/tree_impl.h \
	src/tree/walk.c

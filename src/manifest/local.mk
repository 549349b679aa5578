noinst_LTLIBRARIES += libmanifest.la
libmanifest_la_SOURCES = \
	src/manifest/manifest.c \
	src/manifest/manifest.h \
	src/manifest/change.c \
	src/manifest/directory.c \
	src/manifest/file.c \
	src/manifest/node_impl.h \
	src/manifest/node.c \
	src/manifest/recover.c \
	src/manifest/ref.c \
	src/manifest/serve.c \
	src/manifest/trail.c \
	src/manifest/trail_impl.h

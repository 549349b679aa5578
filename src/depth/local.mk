noinst_LTLIBRARIES += libdepth.la
libdepth_la_SOURCES = src/depth/depth.c src/depth/depth.h \
	src/depth/backlog.c src/depth/backlog.h \
	src/depth/speed.c src/depth/speed.h

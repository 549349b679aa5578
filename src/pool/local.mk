noinst_LTLIBRARIES += libpool.la
libpool_la_SOURCES = \
	src/pool/budget.c src/pool/budget.h \
	src/pool/damage.c src/pool/damage.h \
	src/pool/idle.c src/pool/idle_impl.h \
	src/pool/originals.c src/pool/originals.h \
	src/pool/outcome.c src/pool/outcome.h \
	src/pool/pool.h \
	src/pool/steps.c src/pool/steps.h
libpool_la_CFLAGS = $(AM_CFLAGS)

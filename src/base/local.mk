noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	src/base/array.c src/base/array.h \
	src/base/attr.h \
	src/base/beneath.c src/base/beneath.h \
	src/base/cgroup.c src/base/cgroup.h \
	src/base/cleanup.h \
	src/base/clock.h \
	src/base/cond.h \
	src/base/counters.c src/base/counters.def src/base/counters.h \
	src/base/date.c src/base/date.h \
	src/base/err.c src/base/err.h \
	src/base/escape.c src/base/escape.h \
	src/base/events.c src/base/events.def src/base/events.h \
	src/base/feature.c src/base/feature.h \
	src/base/hash.c src/base/hash.h \
	src/base/hex.h \
	src/base/list.h \
	src/base/lock.h \
	src/base/memory.c src/base/memory.h \
	src/base/mountinfo.c src/base/mountinfo.h \
	src/base/option.c src/base/option.h src/base/option_print.c \
	src/base/owned.c src/base/owned.h \
	src/base/path.c src/base/path.h \
	src/base/permute.c src/base/permute.h \
	src/base/pool.c src/base/pool.h \
	src/base/proc.c src/base/proc.h \
	src/base/ready.c src/base/ready.h \
	src/base/real.c src/base/real.h \
	src/base/size.c src/base/size.h \
	src/base/source.h \
	src/base/table.c src/base/table.h \
	src/base/timer.c src/base/timer.h \
	src/base/turn.c src/base/turn.h \
	src/base/unmount.c src/base/unmount.h \
	src/base/uring.c src/base/uring.h \
	src/base/uring_impl.h src/base/uring_ring.c \
	src/base/words.c src/base/words.h \
	src/base/write.c src/base/write.h
libbase_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS) $(XXHASH_CFLAGS)
libbase_la_LIBADD = $(URING_LIBS) $(XXHASH_LIBS)

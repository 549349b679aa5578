noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	src/common/base/array.c src/common/base/array.h \
	src/common/base/attr.h \
	src/common/base/beneath.c src/common/base/beneath.h \
	src/common/base/cgroup.c src/common/base/cgroup.h \
	src/common/base/cleanup.h \
	src/common/base/clock.h \
	src/common/base/cond.h \
	src/common/base/counters.c src/common/base/counters.def \
	src/common/base/counters.h \
	src/common/base/date.c src/common/base/date.h \
	src/common/base/err.c src/common/base/err.h \
	src/common/base/escape.c src/common/base/escape.h \
	src/common/base/events.c src/common/base/events.def \
	src/common/base/events.h \
	src/common/base/feature.c src/common/base/feature.h \
	src/common/base/hash.c src/common/base/hash.h \
	src/common/base/hex.h \
	src/common/base/json.c src/common/base/json.h \
	src/common/base/latency.c src/common/base/latency.h \
	src/common/base/list.h \
	src/common/base/lock.c src/common/base/lock.h \
	src/common/base/lock_ranks.def \
	src/common/base/loop.c src/common/base/loop.h \
	src/common/base/magic.c src/common/base/magic.h \
	src/common/base/magic.def \
	src/common/base/mountinfo.c src/common/base/mountinfo.h \
	src/common/base/notifier.c src/common/base/notifier.h \
	src/common/base/option.c src/common/base/option.h \
	src/common/base/option_print.c \
	src/common/base/names_memory.c src/common/base/names_memory.h \
	src/common/base/near.c src/common/base/near.h \
	src/common/base/owned.c src/common/base/owned.h \
	src/common/base/path.c src/common/base/path.h \
	src/common/base/probe.c src/common/base/probe.h \
	src/common/base/proc.c src/common/base/proc.h \
	src/common/base/read_trace.c src/common/base/read_trace.h \
	src/common/base/real.c src/common/base/real.h \
	src/common/base/refuse.c src/common/base/refuse.h \
	src/common/base/send_fds.c src/common/base/send_fds.h \
	src/common/base/per_thread.c src/common/base/per_thread.h \
	src/common/base/size.c src/common/base/size.h \
	src/common/base/speed.c src/common/base/speed.h \
	src/common/base/table.c src/common/base/table.h \
	src/common/base/thread_pool.c src/common/base/thread_pool.h \
	src/common/base/timer.c src/common/base/timer.h \
	src/common/base/trace.h \
	src/common/base/unmount.c src/common/base/unmount.h \
	src/common/base/uring.c src/common/base/uring.h \
	src/common/base/uring_impl.h \
	src/common/base/uring_ring.c \
	src/common/base/words.c src/common/base/words.h \
	src/common/base/write.c src/common/base/write.h
libbase_la_CFLAGS = $(AM_CFLAGS) $(URING_CFLAGS) $(XXHASH_CFLAGS)
libbase_la_LIBADD = $(URING_LIBS) $(XXHASH_LIBS)

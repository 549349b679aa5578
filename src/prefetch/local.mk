noinst_LTLIBRARIES += libprefetch.la
libprefetch_la_SOURCES = \
	src/prefetch/order.c src/prefetch/order_impl.h \
	src/prefetch/plan.c src/prefetch/plan.h src/prefetch/plan_impl.h \
	src/prefetch/plan_follow.c \
	src/prefetch/plan_note.c \
	src/prefetch/plan_pace.c src/prefetch/plan_rate.c \
	src/prefetch/prefetch.c src/prefetch/prefetch.h

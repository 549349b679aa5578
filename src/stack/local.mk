# The source of a mount, and the stack of origins that reads it.
noinst_LTLIBRARIES += libstack.la
libstack_la_SOURCES = \
	src/stack/given.c \
	src/stack/reach.c \
	src/stack/stack.c src/stack/stack.h src/stack/stack_impl.h
libstack_la_LIBADD = liborigin.la libbase.la
if HAVE_REMOTE
libstack_la_LIBADD += libremote.la
endif

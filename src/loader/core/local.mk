noinst_LTLIBRARIES += libcore.la
libcore_la_SOURCES = \
	src/loader/core/fetch_rates.h \
	src/loader/core/memory.c src/loader/core/memory.h \
	src/loader/core/mix_text.c src/loader/core/mix_text.h \
	src/loader/core/ready.c src/loader/core/ready.h \
	src/loader/core/settings.c src/loader/core/settings.h \
	src/loader/core/settings_fields.c \
	src/loader/core/settings_table.c src/loader/core/settings_table.h \
	src/loader/core/settings_text.c \
	src/loader/core/turn.c src/loader/core/turn.h
libcore_la_CFLAGS = $(AM_CFLAGS)

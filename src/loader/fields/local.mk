noinst_LTLIBRARIES += libfields.la
libfields_la_SOURCES = \
	src/loader/fields/columns.c src/loader/fields/columns.h \
	src/loader/fields/field_options.c \
	src/loader/fields/field_options_impl.h \
	src/loader/fields/fields.h \
	src/loader/fields/fields_parse.c \
	src/loader/fields/fields_text.c \
	src/loader/fields/map.c src/loader/fields/map.h \
	src/loader/fields/map_mask.c \
	src/loader/fields/volume.c src/loader/fields/volume.h
libfields_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
libfields_la_LIBADD = -lm

noinst_LTLIBRARIES += libimage.la
libimage_la_SOURCES = \
	src/image/augment.c \
	src/image/augment.h \
	src/image/crop.c \
	src/image/decode.c \
	src/image/decode.h \
	src/image/decode_exif.c \
	src/image/decode_header.c \
	src/image/decode_impl.h \
	src/image/decode_lib.c \
	src/image/decode_turn.c \
	src/image/emitter.c \
	src/image/emitter_impl.h \
	src/image/filter.c \
	src/image/filter_impl.h \
	src/image/image.h \
	src/image/jitter.c \
	src/image/jitter_impl.h \
	src/image/kernels.c \
	src/image/kernels_avx2.c \
	src/image/kernels_impl.h \
	src/image/region.h
# Samples are the same to the bit on every machine: float operations are not
# fused where the processor could.
libimage_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off $(JPEG_CFLAGS)
libimage_la_LIBADD = $(JPEG_LIBS) -lm

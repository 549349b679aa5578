noinst_LTLIBRARIES += libimage.la
libimage_la_SOURCES = \
	src/loader/image/box.h \
	src/loader/image/augment.c src/loader/image/augment.h \
	src/loader/image/crop.c src/loader/image/crop_impl.h \
	src/loader/image/crop_draw.c \
	src/loader/image/crop_iou.c \
	src/loader/image/decode.c src/loader/image/decode.h \
	src/loader/image/decode_impl.h \
	src/loader/image/decode_exif.c \
	src/loader/image/decode_header.c \
	src/loader/image/decode_lib.c \
	src/loader/image/decode_turn.c \
	src/loader/image/emitter.c src/loader/image/emitter_impl.h \
	src/loader/image/filter.c src/loader/image/filter_impl.h \
	src/loader/image/image.h \
	src/loader/image/jitter.c src/loader/image/jitter_impl.h \
	src/loader/image/kernels.c src/loader/image/kernels_impl.h \
	src/loader/image/kernels_avx2.c \
	src/loader/image/png.c src/loader/image/png_impl.h \
	src/loader/image/png_convert.c \
	src/loader/image/png_header.c \
	src/loader/image/png_lib.c src/loader/image/png_lib_impl.h \
	src/loader/image/likeness.c src/loader/image/likeness.h \
	src/loader/image/region.h \
	src/loader/image/transcode.c src/loader/image/transcode.h \
	src/loader/image/transcode_impl.h \
	src/loader/image/transcode_lib.c \
	src/loader/image/transcode_pixels.c
libimage_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off $(JPEG_CFLAGS)
libimage_la_LIBADD = $(JPEG_LIBS) -lm

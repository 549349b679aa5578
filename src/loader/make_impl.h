/* SPDX-License-Identifier: MIT */
/*
 * From encoded bytes to a sample: decode, augment, and what is kept of it for
 * later servings. The arithmetic is in decode.h and augment.h; this is what is
 * held where. A worker's; what needs the loader's lock says so.
 */
#ifndef LOADER_MAKE_IMPL_H
#define LOADER_MAKE_IMPL_H

#include "loader/loader_impl.h"

/* A decoded example, wherever it lies. */
struct decoded {
	struct image image; /* of images; for jpeg: a region */
	uint8_t *data;	    /* the same memory */
	size_t bytes;
	uint32_t width, height, channels; /* 0: no image */
};

/* What decoding one entry for one serving takes. */
struct make {
	struct worker *w;
	struct serving *s;
	struct entry *e;
	bool more;	     /* there are servings to come */
	struct image layout; /* jpeg: what is decoded */
	size_t decoded_bytes;
	uint64_t extra_bytes; /* that libjpeg takes meanwhile */
	struct buffer *keep;  /* decode into that, or NULL: scratch */
	uint64_t decode_ns, augment_ns;
};

/* -- make_image.c: what to decode, and decoding -- */

/* Look at the header, once. 0 or -errno, with err. */
int make_probe(struct make *m, struct error *err);
/* Fill in layout, decoded_bytes and extra_bytes. */
void make_layout(struct make *m);
/* 0, -errno, or REFRAIN_DECLINE. */
int make_decode(struct make *m, struct decoded *out, struct error *err);
/* Is it decoded by our decoder? */
bool make_is_jpeg(const struct refrain_loader *l, const struct entry *e);
/* One sample. -errno. */
int make_sample(struct worker *w, const struct entry *e,
	const struct decoded *in, uint64_t seed, uint8_t *out);
/* Say which part of the image it shows. */
void make_crop(const struct refrain_loader *l, const struct entry *e,
	const struct decoded *in, uint64_t seed, struct refrain_crop *out);
/* What `kept` holds. */
void make_kept(const struct refrain_loader *l, const struct entry *e,
	struct decoded *out);

/* -- room.c: memory for it; lock held -- */

/* Room in the pool for what is kept, or NULL. */
struct buffer *room_to_keep(struct refrain_loader *l, size_t bytes);
/* One more is kept, in so many bytes. */
void room_count_kept(struct refrain_loader *l, uint64_t cost);
/* May the encoded bytes stay, for later? */
bool room_for_encoded(const struct refrain_loader *l);
/*
 * Scratch memory for decoding, and the extra bytes: waits if it must. 0,
 * -EAGAIN: another worker has all memory for itself, try later; -E2BIG: it
 * does not fit; -ECANCELED.
 */
int room_to_work(struct make *m);
/* What room_to_work() charged. */
void room_done(struct make *m);

#endif

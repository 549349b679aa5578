/* SPDX-License-Identifier: MIT */
/*
 * refrain's loader: batches of training examples from a directory of JPEGs,
 * a list of files, tar shards or raw records, on local or slow storage, with
 * *echoing*: an example is read and decoded once and served e times, each time
 * augmented afresh, so that a step costs 1/e of the reads and decodes (Choi et
 * al., "Faster Neural Network Training with Data Echoing", 2019).
 *
 *	struct refrain_config c;
 *	struct refrain_loader *l;
 *	const struct refrain_batch *b;
 *	int rc;
 *
 *	refrain_config_init(&c);
 *	c.dataset = "/mnt/imagenet/train";
 *	c.batch = 64;
 *	c.echo = 2;
 *	rc = refrain_open(&l, &c);
 *	if (rc < 0)
 *		return fprintf(stderr, "%s\n", refrain_message(NULL)), 1;
 *	while ((rc = refrain_next(l, &b, 60000)) > 0) {
 *		train(b->data, b->labels, b->count);
 *		refrain_release(b);
 *	}
 *	if (rc < 0)
 *		fprintf(stderr, "%s\n", refrain_message(l));
 *	refrain_close(l);
 *
 * Which example is served where, with which random crop, is a pure function of
 * the configuration: the same stream and the same pixels at any number of
 * threads, on any storage, and from any saved state on.
 *
 * Every function returns 0 or a count, or -errno; refrain_message() says more.
 * Nothing is printed, no signal handler is installed, the process is never
 * ended. A loader may be used by any thread, but refrain_next() and
 * refrain_next_into() by one at a time. After fork() the child can ask for
 * what never changes (examples, classes, names, paths) and refrain_close() it,
 * which then frees nothing, as refrain_release() does. Other calls return
 * -ECHILD, and those that return a number without sign 0.
 */
#ifndef REFRAIN_LOADER_H
#define REFRAIN_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define REFRAIN_API __attribute__((visibility("default")))
#else
#define REFRAIN_API
#endif

/* Of this header; refrain_version() is that of the library. */
#define REFRAIN_VERSION 100 /* major * 10000 + minor * 100 + patch */

struct refrain_loader;

/* -- What is asked for -------------------------------------------------- */

/* What `dataset` is. */
enum refrain_source {
	REFRAIN_SOURCE_AUTO = 0, /* a directory: TAR if it holds .tar files and
				    no directories, else FOLDER; a file: TAR if
				    its name ends so, else LIST */
	REFRAIN_SOURCE_FOLDER,	 /* images below a directory; the label is the
				    first directory of a path. Symbolic links
				    are followed. Names end in .jpg or .jpeg in
				    any case (with decode(): any); files with
				    other names, .jpe too, are left out */
	REFRAIN_SOURCE_LIST,	 /* a text file, see refrain_config.root */
	REFRAIN_SOURCE_TAR,	 /* a tar file, or a directory of them: each
				    example is the members of one base name,
				    NAME.jpg and NAME.cls (WebDataset) */
	REFRAIN_SOURCE_RAW,	 /* a file of records of record_bytes each, or a
				    directory of such files */
};

/* Where echoes come from. */
enum refrain_echo_point {
	REFRAIN_ECHO_BEFORE = 0, /* the decoded example: each its own crop */
	REFRAIN_ECHO_AFTER,	 /* the augmented example: identical bytes */
	REFRAIN_ECHO_BATCH,	 /* the whole batch, identical */
};

/* What becomes of a decoded image. */
enum refrain_augment {
	REFRAIN_AUGMENT_TRAIN = 0, /* random resized crop, flip, and what else
				      is set below */
	REFRAIN_AUGMENT_EVAL, /* shorter side to size * 8 / 7, centre crop */
	REFRAIN_AUGMENT_NONE, /* the whole image resized, aspect not kept */
};

enum refrain_type {
	REFRAIN_U8 = 0,
	REFRAIN_F16, /* IEEE 754 binary16 */
	REFRAIN_F32,
};

enum refrain_layout {
	REFRAIN_NHWC = 0,
	REFRAIN_NCHW,
};

/*
 * What becomes of an example that cannot be read or decoded. What the process
 * lacks (descriptors: -EMFILE, -ENFILE; memory: -ENOMEM) is no damage: then
 * refrain_next() fails, whatever the policy is.
 */
enum refrain_policy {
	REFRAIN_SUBSTITUTE = 0, /* another example takes its place, chosen by
				   the seed alone; status[] says so. If 16 of
				   them are damaged, too, refrain_next() fails
				   at the batch */
	REFRAIN_ZERO_FILL,	/* zero bytes, its own label */
	REFRAIN_FAIL,		/* refrain_next() fails at its batch */
};

/* What becomes of the last batch of the run, if it is short. */
enum refrain_last {
	REFRAIN_LAST_SHORT = 0, /* delivered, `count` < batch */
	REFRAIN_LAST_DROP,	/* dropped, and counted */
};

/* refrain_config.echo: the factor is found by measuring, and follows. */
#define REFRAIN_ECHO_AUTO (-1.0)

/* refrain_config.flags */
#define REFRAIN_FLAG_IN_ORDER 0x1  /* no shuffling: index order */
#define REFRAIN_FLAG_NO_FLIP 0x2   /* never mirror */
#define REFRAIN_FLAG_NO_ORIENT 0x4 /* ignore EXIF orientation */
#define REFRAIN_FLAG_PAD_RANKS                                                 \
	0x8 /* ranks get equally many examples:                                \
	       short ones repeat a first one */
#define REFRAIN_FLAG_ALLOW_DUPLICATES                                          \
	0x10			       /* take a window below the minimum      \
					*/
#define REFRAIN_FLAG_NO_NORMALISE 0x20 /* F16, F32: value / 255 alone */
/*
 * A dataset on a mount of refrain (FOLDER, LIST) is read with the mount's help:
 * what lies in the mount's cache already is opened there, verified, without
 * asking the mount. What is not there, or is damaged, is read through the
 * mount; from then on until an epoch was all in the cache a thread tells the
 * mount the order of the run, so that it fetches in that order. With this flag
 * everything is read through the mount, and it is told nothing. The stream and
 * the pixels are the same.
 */
#define REFRAIN_FLAG_NO_MOUNT_HELP 0x40
/*
 * AUGMENT_TRAIN: decode every image at full size. Samples are then those of a
 * full decode, cropped and resized as Pillow does. Without it libjpeg decodes
 * at 1/2, 1/4 or 1/8 where the crop (with echoes before augmentation: every
 * crop that the image can have) keeps as many pixels as the sample. Such
 * samples differ from the exact ones by about 1 of 255 in the mean, by up to
 * some 90 at single edges. EVAL and NONE are always exact.
 */
#define REFRAIN_FLAG_EXACT 0x80
/*
 * Ranks get equally many examples, and so equally many batches: up to world - 1
 * examples of the run are served by nobody, and counted. With REFRAIN_LAST_DROP
 * all batches are full, too. Not with REFRAIN_FLAG_PAD_RANKS.
 */
#define REFRAIN_FLAG_EQUAL_RANKS 0x100

/* What refrain_config.decode returns for an example that it leaves to the
 * library's JPEG decoder. */
#define REFRAIN_DECLINE 1

/* An example before it is decoded, lent for a call. */
struct refrain_encoded {
	const void *data;
	size_t bytes;
	const char *path; /* in the dataset, for messages */
	uint64_t index;
};

/* An example after decoding: `bytes` bytes, for images height x width x
 * channels of u8. */
struct refrain_decoded {
	void *data;
	size_t bytes;
	uint32_t width, height, channels;
};

/*
 * 0 is the default of every member but those marked required; `size` is
 * sizeof(struct refrain_config). See refrain_config_init(). Members are only
 * ever added at the end; a library that is older than the header takes a longer
 * struct if what it does not know is zero. What pointers point to is copied by
 * refrain_open(), but for `ctx` pointers.
 */
struct refrain_config {
	size_t size;

	/* The dataset. */
	const char *dataset; /* a path; required */
	int32_t source;	     /* enum refrain_source */
	/* LIST: paths are relative to it; NULL: to the list's directory. Lines
	 * are "PATH", "PATH<TAB>LABEL" or those of `refrain index`; empty ones
	 * and those that begin with '#' are none. A path that is there twice is
	 * two examples. Labels are names of classes, numbered by their bytewise
	 * order, or numbers if all are decimal ones below 2^31 without leading
	 * zeros; so are the texts of NAME.cls in a tar. */
	const char *root;
	uint32_t record_bytes; /* RAW: of a record, its label included */
	uint32_t label_bytes;  /* RAW: of the label that begins a record,
				  little endian; at most 8 */

	/* The stream. */
	uint32_t batch;	    /* examples a step; required */
	uint32_t epochs;    /* 0: 1 */
	uint64_t seed;	    /* of order and augmentation */
	double echo;	    /* e >= 1, taken as the nearest p/q with q <= 64;
			       0: 1; REFRAIN_ECHO_AUTO: see echo_max */
	int32_t echo_point; /* enum refrain_echo_point */
	uint32_t window;    /* the most examples with echoes outstanding;
			       0: max(16 * batch, 1024), for an echo that
			       changes the least one if that is more */
	uint32_t min_lag;   /* steps between servings of one example; 0: 1 */
	/* Above 0: the order within each `shuffle_window` examples is random,
	 * that of the windows not, for media that must be read in sequence. */
	uint32_t shuffle_window;
	uint32_t rank, world; /* world 0: 1 */
	int32_t last;	      /* enum refrain_last */
	uint32_t flags;	      /* REFRAIN_FLAG_... */

	/* What a batch holds. */
	uint32_t height, width;	  /* 0: 224, or the other one */
	int32_t type;		  /* enum refrain_type */
	int32_t layout;		  /* enum refrain_layout */
	int32_t augment;	  /* enum refrain_augment */
	float mean[3], std[3];	  /* of values in 0..1, for F16 and F32; all 0:
				     those of ImageNet */
	float area_min, area_max; /* of the crop, share of the image; 0: 0.08
				     and 1 */
	float aspect_min, aspect_max; /* of the crop; 0: 3/4 and 4/3 */
	float jitter[3]; /* brightness, contrast, saturation: factors
			    from 1 - x to 1 + x; 0: none */
	uint32_t cutout; /* side of a grey square, pixels; 0: none */

	/* Anything that is no JPEG. decode() gets out->data with room for
	 * decoded_max_bytes, fills it, sets out->bytes (and the shape, for an
	 * image that is to be augmented), and returns 0 or -errno; or
	 * REFRAIN_DECLINE, and the example is decoded as a JPEG, as if there
	 * were no decode(), whatever decoded_max_bytes is. augment()
	 * turns a decoded example into sample_bytes bytes of a batch; without
	 * it, examples without a shape are copied. Both are called from several
	 * threads and must depend on their arguments alone. */
	int (*decode)(void *ctx, const struct refrain_encoded *in,
		struct refrain_decoded *out);
	int (*augment_fn)(void *ctx, const struct refrain_decoded *in,
		uint64_t seed, void *out, size_t sample_bytes);
	void *ctx;
	size_t decoded_max_bytes;
	size_t sample_bytes; /* of one example in a batch; 0: an image's, or a
				RAW record's less its label */

	/* Damage. See also max_damage. */
	int32_t policy;	     /* enum refrain_policy */
	uint64_t max_pixels; /* of an image; 0: 200 million */

	/* Resources. */
	uint32_t threads;	/* decoding and augmenting; 0: processors */
	uint32_t batches_ahead; /* ready or being made; 0: 4 */
	uint32_t reads_ahead;	/* examples being read; 0: 64 */
	uint64_t memory_bytes;	/* for everything; 0: a quarter of what the
				   process may use */
	const uint32_t *cpus;	/* the processors that threads may run on */
	uint32_t cpu_count;	/* 0: as the caller's */
	int32_t nice;		/* added to that of the caller, 0 to 19 */
	/* Memory of batches, such as pinned memory; 64-byte aligned. Called by
	 * refrain_open(), and free by whoever lets the last batch go. */
	void *(*alloc)(void *ctx, size_t bytes);
	void (*free)(void *ctx, void *p, size_t bytes);
	void *alloc_ctx;

	/* What refrain_save() gave, to go on from there; NULL: the start. */
	const void *state;
	size_t state_bytes;

	/*
	 * With REFRAIN_ECHO_AUTO the run begins with e = 1. The loader measures
	 * how long the upstream takes for a batch of fresh examples and the
	 * trainer for a step, and changes e to follow their ratio r, up to
	 * echo_max, at most once a window: the time in which window - batch
	 * fresh examples are served, which is also what a change takes to take
	 * full effect. e stays exactly 1 while r is at most 1.04. After a
	 * change of speed e is within 15 % of r in three windows. Reads are
	 * then done in bursts of 3/8 of a window, at most 384 and a quarter
	 * of the memory, and at least twice reads_ahead, as only an upstream
	 * that is busy can be timed; a window must be (batches_ahead + 4) *
	 * batch + 3 * reads_ahead + 16 at least. Set it where these may differ
	 * when a log is replayed. On a mount that fetches by the loader's plan
	 * no bursts are needed: the mount measures what it fetches.
	 *
	 * Where e changes depends on time: refrain_echo_log() says where it
	 * was. Given back as echo_log the same stream comes again, and nothing
	 * is measured; after its last line e stays. Ranks must change alike:
	 * with world > 1 an echo_log is required, the same for all.
	 */
	double echo_max;      /* 0: 4 */
	const char *echo_log; /* NULL: measure; "": e stays 1 */

	/*
	 * refrain_open() fails with -ETIMEDOUT when the storage has answered
	 * nothing for so long, as on a mount that hangs; a first look at
	 * millions of files may take longer than that, as long as it goes on.
	 * 0: 30000; -1: wait for ever. What hangs is left behind with the
	 * memory that it may still write to.
	 */
	int32_t open_timeout_ms;
	uint32_t reserved; /* 0 */

	/*
	 * SUBSTITUTE and ZERO_FILL: the share of fresh examples that may be
	 * damaged. If it is more, refrain_next() fails with -EBADMSG: at the
	 * first batch after 1000 fresh examples, or at the end of the first
	 * epoch if that comes before, or at any later batch. Counted from
	 * refrain_open() on. 0: 0.1; 1: all may be.
	 */
	double max_damage;
};

static inline void refrain_config_init(struct refrain_config *c)
{
	memset(c, 0, sizeof(*c));
	c->size = sizeof(*c);
}

/* -- Members by name ---------------------------------------------------- */

/* How the text of a member reads. */
enum refrain_member_type {
	REFRAIN_MEMBER_NUMBER = 0, /* a whole number */
	REFRAIN_MEMBER_REAL,  /* 2.5 or 5/2; several have commas between them,
				 one text for all is allowed */
	REFRAIN_MEMBER_ECHO,  /* a real number, or "auto" */
	REFRAIN_MEMBER_BYTES, /* a whole number, with K, M, G or T after it */
	REFRAIN_MEMBER_WORD,  /* one of the words of `arg` */
	REFRAIN_MEMBER_FLAG,  /* 1 or 0, true or false, yes or no, on or off */
	REFRAIN_MEMBER_SIDES, /* 224, or WIDTHxHEIGHT */
	REFRAIN_MEMBER_TEXT,  /* kept as a pointer to the caller's text */
};

/* A member of the configuration that can be set by a text. */
struct refrain_member {
	size_t size;	  /* of this struct */
	const char *name; /* as in struct refrain_config; a flag is a member
			     of its own, and "size" is height and width */
	const char *arg;  /* a name for its value, or words as "u8|f16|f32";
			     NULL for a flag */
	const char *help; /* a sentence */
	int32_t type;	  /* enum refrain_member_type */
	uint32_t count;	  /* numbers in it */
	/* Limits of a number, and what 0 stands for; all 0: none. */
	double fallback, min, max;
};

/* -- What is given ------------------------------------------------------ */

/* Of one example of a batch: 0, or why something else stands in its place
 * (-EIO, -EBADMSG, -ENOENT, ...). */
typedef int32_t refrain_status;

/*
 * What a sample shows: the part of the image, in pixels of the upright image at
 * full size, that was resized to it. All 0 for a sample that the library did
 * not make from an image (zero-filled, a record, augment_fn()).
 */
struct refrain_crop {
	double x, y, width, height;	    /* not whole for AUGMENT_EVAL */
	uint32_t image_width, image_height; /* after EXIF orientation */
	uint32_t flip;			    /* 1: mirrored */
	uint32_t reserved;		    /* 0 */
};

/*
 * A batch; it stays valid until refrain_release(), also after refrain_close().
 * Who borrows it may write to `data` and `labels`: nobody else reads them.
 */
struct refrain_batch {
	size_t size;	   /* of this struct */
	const void *data;  /* count samples of sample_bytes each */
	size_t data_bytes; /* count * sample_bytes */
	size_t sample_bytes;
	uint32_t count;	       /* examples, at most the configured batch */
	int32_t type;	       /* enum refrain_type */
	int32_t layout;	       /* enum refrain_layout */
	uint32_t ndim;	       /* 4, or 2 for records: count, bytes */
	uint64_t shape[4];     /* in the order of the layout */
	uint64_t step;	       /* from 0, of this rank's run */
	uint64_t epoch;	       /* that its last fresh example belongs to */
	uint32_t fresh;	       /* how many are served for the first time */
	uint32_t ends_epoch;   /* 1: it holds the last fresh one of its epoch */
	const int64_t *labels; /* number of the class; -1: none */
	const uint64_t *indices;     /* which example was scheduled */
	const uint64_t *substitutes; /* which one is there (mostly the same) */
	const uint32_t *echoes;	     /* 0: fresh, 1: first echo, ... */
	const uint64_t *seeds;	     /* of the augmentation */
	const refrain_status *status;
	const struct refrain_crop *crops;
	uint64_t ended_epoch; /* with ends_epoch: which epoch ended (the last,
				 if several did); `epoch` may be the next one
				 already. Else UINT64_MAX */
};

/* Time and work of one stage. */
struct refrain_stage {
	uint64_t items, bytes;
	uint64_t cpu_ns;  /* of its threads: READ: those that read, without
			     the kernel's own of io_uring; DECODE and AUGMENT:
			     those of `threads`, shared as busy_ns is, so
			     that one of them may fall a little as the other
			     grows; TRAINER: 0, as it is not ours */
	uint64_t busy_ns; /* wall, summed over items */
	uint64_t wait_ns; /* wall, summed over items, waiting for it */
};

enum refrain_stage_name {
	REFRAIN_STAGE_READ = 0,
	REFRAIN_STAGE_DECODE,
	REFRAIN_STAGE_AUGMENT,
	REFRAIN_STAGE_TRAINER, /* between refrain_next() calls */
	REFRAIN_STAGES,
};

/* Counters since refrain_open(); rates over the last window of steps. */
struct refrain_stats {
	size_t size;
	uint64_t epochs, steps;		 /* completed, of this handle */
	uint64_t fresh, served;		 /* examples, in returned batches */
	uint64_t files_read, bytes_read; /* a member of a tar is a file */
	uint64_t decodes;
	uint64_t redecodes; /* of those: again, as memory or a restart asked */
	uint64_t rereads;
	/* Fresh examples that failed, by cause; a damaged one counts again in
	 * each epoch. See also damaged_examples, substitute_errors. */
	uint64_t errors;
	uint64_t errors_read;	/* cannot be opened or read */
	uint64_t errors_format; /* no image, or of a kind that is not decoded */
	uint64_t errors_damaged;	   /* truncated or corrupt */
	uint64_t errors_too_large;	   /* over max_pixels or the memory */
	uint64_t substituted, zero_filled; /* servings */
	uint64_t dropped_examples;    /* servings of the run's last batch, if
					 it is short and dropped */
	uint64_t dropped_echoes;      /* owed when the world changed */
	uint64_t in_batch_duplicates; /* pairs of servings of one decoded
					 example; what is decoded again in the
					 next epoch is another */
	uint64_t min_lag_steps;
	double mean_lag_steps;
	double echo_factor;			  /* asked for now */
	uint64_t pool_bytes, pool_bytes_peak;	  /* decoded examples kept */
	uint64_t memory_bytes, memory_bytes_peak; /* everything */
	uint64_t reads_abandoned;		  /* hung at refrain_close() */
	struct refrain_stage stages[REFRAIN_STAGES];
	double t_upstream_ms;	/* a batch of fresh examples, upstream busy */
	double t_downstream_ms; /* a step, less waiting */
	double r;		/* t_upstream_ms / t_downstream_ms */
	double stall_pct;	/* waiting inside refrain_next() / wall */
	uint64_t stream_hash;	/* XXH3 of (index, echo number, seed), 8 bytes
				   little endian each, of all served */
	const char *bottleneck; /* "read", "decode", "augment", "trainer" */
	/* Right after the slowest stage: "before" or "after". Never "batch":
	 * samples are augmented where they lie in the batch, so there is no
	 * stage between. */
	const char *suggested_point;
	uint64_t echo_changes; /* of the whole run, also before a restart */
	uint64_t direct_hits;  /* of files_read: from the cache of a mount of
				  refrain, without asking the mount */
	/* Of in_batch_duplicates: in the one batch near the end of a run where
	 * an echo that is not whole may leave some, however large the window
	 * is. All are, unless the window was allowed to be too small or the
	 * run has fewer than 2 * batch * min_lag fresh examples. */
	uint64_t end_duplicates;
	uint64_t damaged_examples;  /* different examples of the dataset that
				       failed, scheduled or as substitutes */
	uint64_t substitute_errors; /* substitutes that failed, too */
	/* With REFRAIN_ECHO_AUTO: why the factor is what it is, a sentence; and
	 * how many fresh examples this rank's run must have for a first change.
	 * Else "" and 0. */
	const char *echo_reason;
	uint64_t echo_needs_fresh;
	uint64_t dropped_fresh; /* fresh examples of this rank's run that no
				   batch has: for REFRAIN_LAST_DROP or
				   REFRAIN_FLAG_EQUAL_RANKS */
};

/* -- Calls -------------------------------------------------------------- */

/*
 * Set a member of the configuration by its name ('-' may stand for '_') from a
 * text. A text of 0 is the default, as everywhere. -ENOENT for a name that no
 * member has, -EINVAL for a text that does not fit, -E2BIG for a member that
 * config->size leaves out; refrain_message(NULL) says more. The text must last
 * until refrain_open() only for REFRAIN_MEMBER_TEXT.
 */
REFRAIN_API int refrain_config_set(
	struct refrain_config *config, const char *name, const char *text);

/*
 * Describe the n-th member that refrain_config_set() knows, from 0 on: fills as
 * much of *out as out->size says (set it first). 1, or 0 if there is none.
 */
REFRAIN_API int refrain_config_member(uint32_t n, struct refrain_member *out);

/*
 * Open a dataset and begin to fill the first batches. What was found in it is
 * kept as an index in $XDG_CACHE_HOME/refrain (or ~/.cache/refrain) and used
 * again until a directory, list or shard changes; it may be removed at any
 * time. On failure *out is NULL
 * and refrain_message(NULL) says why: -EINVAL (a member of the configuration;
 * it is named), -E2BIG (a longer configuration than this library knows),
 * -ENOENT, -ENOTDIR, -EACCES (the dataset), -ENODATA (no example in it),
 * -ENOMEM (memory_bytes is below what the batches alone take, or none is
 * left), -EBADMSG (a state that is damaged), -ESTALE (a state of another
 * dataset or configuration; the member is named), -ETIMEDOUT (the message says
 * what did not answer: see open_timeout_ms).
 */
REFRAIN_API int refrain_open(
	struct refrain_loader **out, const struct refrain_config *config);

/*
 * Lend the next batch: 1 and *out, or 0 at the end of the run. timeout_ms: 0
 * looks only, -1 waits for ever. -ETIMEDOUT (the message names the stage and
 * the file that it waits for), -EBUSY (all batches are lent: release one),
 * -ESHUTDOWN (refrain_close() was called), or what stopped the loader, with
 * the file's name: every later call returns it again.
 */
REFRAIN_API int refrain_next(struct refrain_loader *l,
	const struct refrain_batch **out, int timeout_ms);

/*
 * As refrain_next(), but the samples and labels are put into the caller's
 * memory and nothing is lent: the number of examples, or as above. -ENOSPC if
 * there is less room than for a full batch. labels may be NULL.
 */
REFRAIN_API int refrain_next_into(struct refrain_loader *l, void *data,
	size_t data_bytes, int64_t *labels, size_t label_count, int timeout_ms);

/* Give a batch back, from any thread, also after refrain_close(). */
REFRAIN_API void refrain_release(const struct refrain_batch *b);

/*
 * A descriptor (an eventfd) that polls readable while refrain_next() would not
 * wait. The loader's own: neither read nor close it.
 */
REFRAIN_API int refrain_fd(struct refrain_loader *l);

/*
 * The state after the last batch returned: at most REFRAIN_STATE_MAX bytes.
 * The number of bytes, or -ENOSPC if there is room for fewer.
 */
#define REFRAIN_STATE_MAX 256
REFRAIN_API int refrain_save(struct refrain_loader *l, void *buf, size_t size);

/* The state before the batch of `step`, to begin there: as refrain_save(), or
 * -ERANGE if the run has no such step or e has changed too often since. */
REFRAIN_API int refrain_save_at(
	struct refrain_loader *l, uint64_t step, void *buf, size_t size);

/*
 * With REFRAIN_ECHO_AUTO: the changes of e that this handle made so far, for
 * refrain_config.echo_log: lines "STEP P/Q", of at most 32 bytes, with a NUL
 * after the last. The length, or -ENOSPC. A change may be there some steps
 * before its step. What was made before a restart is not there again: it is
 * the first echo_changes lines of what was logged then, with the
 * refrain_stats.echo_changes that refrain_open() found in the state.
 */
REFRAIN_API int refrain_echo_log(
	struct refrain_loader *l, char *buf, size_t size);

/* Fill as much of *out as out->size says (set it first). */
REFRAIN_API int refrain_stats_get(
	struct refrain_loader *l, struct refrain_stats *out);

/*
 * The statistics as one line of JSON, NUL-terminated: its length, or -ENOSPC.
 * 8 KiB are enough.
 */
REFRAIN_API int refrain_stats_json(
	struct refrain_loader *l, char *buf, size_t size);

/* How many examples the dataset has, and how many classes. */
REFRAIN_API uint64_t refrain_examples(struct refrain_loader *l);
REFRAIN_API uint64_t refrain_classes(struct refrain_loader *l);
/*
 * How many batches this rank's run has left from here, the next one included;
 * with REFRAIN_ECHO_AUTO, if the factor changed no more.
 */
REFRAIN_API uint64_t refrain_steps_left(struct refrain_loader *l);
/* The number of the next batch in the run. */
REFRAIN_API uint64_t refrain_step(struct refrain_loader *l);

/*
 * How many steps of the run there are until `epoch` (from 0) is over: its last
 * fresh example is in the batch before. With REFRAIN_FLAG_PAD_RANKS it is the
 * same on all ranks. Echoes of the run's last epoch may follow.
 */
REFRAIN_API uint64_t refrain_epoch_end(
	struct refrain_loader *l, uint64_t epoch);

/* The name of a class (any bytes, NUL after them), or NULL. The loader's. */
REFRAIN_API const char *refrain_class_name(
	struct refrain_loader *l, int64_t label, size_t *bytes);

/* The path of an example in the dataset, or NULL. The loader's. */
REFRAIN_API const char *refrain_path(struct refrain_loader *l, uint64_t index);

/*
 * Why the last call that failed did; NULL: the last refrain_open() or
 * refrain_config_set() of this thread. Never NULL; valid until the next call on
 * the handle by this thread.
 */
REFRAIN_API const char *refrain_message(struct refrain_loader *l);

/* The example that the last refrain_next() failed at. */
struct refrain_failure {
	size_t size;	/* of this struct */
	int32_t error;	/* -errno */
	int32_t stage;	/* enum refrain_stage_name */
	uint64_t index; /* for refrain_path() */
	uint64_t step;	/* of the batch that has it */
};

/* Fill as much of *out as out->size says (set it first): 1, or 0 if it did not
 * fail or not at an example. */
REFRAIN_API int refrain_failure_get(
	struct refrain_loader *l, struct refrain_failure *out);

/*
 * End the loader: waiting calls return -ESHUTDOWN. Returns within a second
 * also when reads or callbacks hang: 0, or the number of those that were left
 * behind with their memory; callbacks and their contexts are needed then.
 * Batches that are lent stay valid. NULL is allowed.
 */
REFRAIN_API int refrain_close(struct refrain_loader *l);

/* Of the library, as REFRAIN_VERSION. */
REFRAIN_API int refrain_version(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * refrain's loader reads a directory of JPEGs and PNGs, a list of files, tar
 * shards, raw records or files of tokens, on local or slow storage, and returns
 *batches of training examples. It supports data echoing: each example is read
 *and decoded once and served e times, with a new augmentation each time, so a
 *step needs 1/e of the reads and decodes (Choi et al., "Faster Neural Network
 *Training with Data Echoing", 2019).
 *
 * 	struct refrain_config c;
 * 	struct refrain_loader *l;
 * 	const struct refrain_batch *b;
 * 	int rc;
 *
 * 	refrain_config_init(&c);
 * 	c.dataset = "/mnt/imagenet/train";
 * 	c.batch = 64;
 * 	c.echo = 2;
 * 	rc = refrain_open(&l, &c);
 * 	if (rc < 0)
 * 		return fprintf(stderr, "%s\n", refrain_message(NULL)), 1;
 * 	while ((rc = refrain_next(l, &b, 60000)) > 0) {
 * 		train(b->data, b->labels, b->count);
 * 		refrain_release(b);
 * 	}
 * 	if (rc < 0)
 * 		fprintf(stderr, "%s\n", refrain_message(l));
 * 	refrain_close(l);
 *
 * The order of examples and their random crops are a pure function of the
 * configuration. The stream and its pixels do not depend on the number of
 * threads, on the storage, or on whether the run was resumed from a state.
 * (REFRAIN_ECHO_AUTO is the exception: see echo_max.)
 *
 * Functions return 0 or a count on success and -errno on failure;
 * refrain_message() returns the error message. The library prints nothing,
 * installs no signal handler and never ends the process.
 *
 * A pointer must not be NULL unless its comment allows it. Functions refuse
 * NULL with -EINVAL or, if they return no int, with 0 or NULL.
 * refrain_release() and refrain_close() ignore NULL. If the loader is NULL,
 * refrain_message(NULL) has the message.
 *
 * Any thread may use a loader, but only one thread at a time may call
 * refrain_next() or refrain_next_into(). After fork() the child may query facts
 * that never change (examples, classes, names, paths), and may call
 * refrain_release() and refrain_close(), which free nothing there. All other
 * calls return -ECHILD, or 0 if they return an unsigned number.
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

/* The version of this header. refrain_version() returns the version of the
 * library. */
#define REFRAIN_VERSION 100 /* major * 10000 + minor * 100 + patch */

struct refrain_loader;

/* -- Configuration ------------------------------------------------------ */

/* The kind of dataset. */
enum refrain_source {
	REFRAIN_SOURCE_AUTO = 0, /* a directory is TAR if it holds .tar files
				    and no directories, else FOLDER; a file is
				    TAR if its name ends in .tar, else LIST */
	/* images below a directory, labelled by the first directory of their
	 * path. Symbolic links are followed. Only names that end in .jpg, .jpeg
	 * or .png, in any case, are examples; with decode() all names are. A
	 * label is the position of the directory in the bytewise order of all
	 * directories of the root, with or without examples, as in
	 * torchvision's ImageFolder */
	REFRAIN_SOURCE_FOLDER,
	REFRAIN_SOURCE_LIST, /* a text file; see refrain_config.root */
	REFRAIN_SOURCE_TAR,  /* a tar file or a directory of them. Members
				with the same base name form one example:
				NAME.jpg and NAME.cls (WebDataset) */
	REFRAIN_SOURCE_RAW,  /* a file of records of record_bytes each, or a
				directory of such files */
};

/* The stage after which an example is repeated. */
enum refrain_echo_point {
	REFRAIN_ECHO_BEFORE = 0, /* repeat the decoded example; each echo gets
				    its own crop */
	REFRAIN_ECHO_AFTER,	 /* repeat the augmented example, unchanged */
	REFRAIN_ECHO_BATCH,	 /* repeat the whole batch, unchanged */
};

/* How to turn a decoded image into a sample. */
enum refrain_augment {
	REFRAIN_AUGMENT_TRAIN = 0, /* random resized crop, flip, and the
				      optional augmentations set below */
	REFRAIN_AUGMENT_EVAL, /* shorter side to size * 8 / 7, centre crop */
	REFRAIN_AUGMENT_NONE, /* resize the whole image, ignoring its aspect
				 ratio */
	REFRAIN_AUGMENT_FIT,  /* resize the whole image, keeping its aspect
				 ratio, and fill the rest with `mean` */
	REFRAIN_AUGMENT_IOU,  /* random crop that contains the centre of a box,
				 as for the detector SSD, and flip; needs
				 `fields` with boxes */
};

/* The type of a value. Samples have one of the first three types; columns and
 * the results of decode() may have the others. */
enum refrain_type {
	REFRAIN_U8 = 0,
	REFRAIN_F16 = 1, /* IEEE 754 binary16 */
	REFRAIN_F32 = 2,
	REFRAIN_U16 = 3,
	REFRAIN_I16 = 4,
	REFRAIN_I32 = 5,
	REFRAIN_I64 = 6,
	REFRAIN_F64 = 7,  /* reserved */
	REFRAIN_BF16 = 8, /* reserved */
};

enum refrain_layout {
	REFRAIN_NHWC = 0,
	REFRAIN_NCHW,
};

/*
 * How to handle an example that cannot be read or decoded. The policy does not
 * apply when the process runs out of descriptors (-EMFILE, -ENFILE) or memory
 * (-ENOMEM): refrain_next() then always fails.
 */
enum refrain_policy {
	REFRAIN_SUBSTITUTE = 0, /* serve another example instead, chosen by the
				   seed alone, and set status[]. If 16
				   substitutes are damaged, too, refrain_next()
				   fails at the batch */
	REFRAIN_ZERO_FILL,	/* serve zero bytes with the example's label */
	REFRAIN_FAIL,		/* refrain_next() fails at the batch */
};

/* The kind of a field of an example, which decides how it follows the crop of
 * its serving; see struct refrain_column. Kinds without a comment are reserved.
 */
enum refrain_kind {
	REFRAIN_KIND_IMAGE = 1, /* the samples of images */
	REFRAIN_KIND_CLASS = 2, /* class numbers, one for each example */
	/* class numbers, any number for each example */
	REFRAIN_KIND_CLASSES = 3,
	REFRAIN_KIND_BOXES = 4,
	REFRAIN_KIND_POINTS = 5,
	REFRAIN_KIND_MASK = 6, /* an id for each pixel */
	REFRAIN_KIND_AUDIO = 7,
	REFRAIN_KIND_TOKENS = 8, /* windows of files of tokens */
	REFRAIN_KIND_ARRAY = 9,	 /* samples that are not images: records, and
				    what augment_fn() makes */
	REFRAIN_KIND_BYTES = 10, /* a file as it is, such as a text */
};

/* Bits of refrain_crop.flip. */
enum refrain_flip {
	REFRAIN_FLIP_HORIZONTAL = 0x1, /* left and right are exchanged */
	/* top and bottom are exchanged; no crop has this yet */
	REFRAIN_FLIP_VERTICAL = 0x2,
};

/* How to handle a short last batch of the run. */
enum refrain_last {
	REFRAIN_LAST_SHORT = 0, /* deliver it with `count` < batch */
	REFRAIN_LAST_DROP,	/* drop it and count it */
};

/* How a share handles a job that makes the others wait. */
enum refrain_share_slow {
	REFRAIN_SHARE_WAIT = 0, /* the others wait for the job */
	/* the job makes its own batches, of the same stream, until it has
	 * caught up; no job waits */
	REFRAIN_SHARE_SOLO = 1,
};

/* When a loader makes samples itself that workers could make. */
enum refrain_service_local {
	REFRAIN_SERVICE_LATE = 0, /* if they would come too late */
	REFRAIN_SERVICE_ALSO = 1, /* whenever a thread has nothing else to do */
};

/* A value of refrain_config.echo: measure, and adapt the factor. */
#define REFRAIN_ECHO_AUTO (-1.0)

/* refrain_config.flags */
#define REFRAIN_FLAG_IN_ORDER 0x1  /* no shuffling: index order */
#define REFRAIN_FLAG_NO_FLIP 0x2   /* never mirror */
#define REFRAIN_FLAG_NO_ORIENT 0x4 /* ignore EXIF orientation */
#define REFRAIN_FLAG_PAD_RANKS                                                 \
	0x8 /* give all ranks the same number of examples: short ranks repeat  \
	       one of their first */
#define REFRAIN_FLAG_ALLOW_DUPLICATES                                          \
	0x10			       /* accept a window below the minimum    \
					*/
#define REFRAIN_FLAG_NO_NORMALISE 0x20 /* F16, F32: only divide by 255 */
/*
 * Do not use the cache of a refrain mount directly. By default, a FOLDER or
 * LIST dataset on a refrain mount is read with the mount's help: the loader
 * opens and verifies entries in the mount's cache directly, and reads missing
 * or damaged ones through the mount. After a first miss, a thread also sends
 * the mount the order of the run, so that the mount fetches in that order. The
 * thread stops once a whole epoch was in the cache. With this flag the loader
 * reads everything through the mount and sends it nothing. The stream and the
 * pixels are the same either way.
 */
#define REFRAIN_FLAG_NO_MOUNT_HELP 0x40
/*
 * TRAIN, IOU: decode every image at full size, then crop and resize it as
 * Pillow does. Without this flag, libjpeg decodes at 1/2, 1/4 or 1/8 scale when
 * the crop still has at least as many pixels as the sample (with echoes before
 * augmentation: every crop that the image can have). Samples without this flag
 * differ from exact ones by about 1 of 255 on average and by up to about 90 at
 * single edges. EVAL and NONE are always exact.
 */
#define REFRAIN_FLAG_EXACT 0x80
/*
 * Give all ranks the same number of examples, and so of batches. Up to world -
 * 1 examples of the run are then not served; refrain_stats counts them. With
 * REFRAIN_LAST_DROP all batches are also full. Cannot be combined with
 * REFRAIN_FLAG_PAD_RANKS.
 */
#define REFRAIN_FLAG_EQUAL_RANKS 0x100
/*
 * From its first read on, let the cache of a refrain mount admit only files
 * that a plan names. If the files of a subset fit into the cache, all of them
 * get into it, whatever other programs read from the mount meanwhile; their
 * files pass through. This ends with the plan of this loader, which is when a
 * whole pass was in the cache, or when the loader is closed. Without effect
 * where the loader has no help of a mount; see REFRAIN_FLAG_NO_MOUNT_HELP.
 */
#define REFRAIN_FLAG_ADMIT_PLANNED 0x200

/* refrain_config.decode returns this to leave an example to the library's
 * decoder of JPEG and PNG. */
#define REFRAIN_DECLINE 1

/* An encoded example, valid during the call. New members are only added at the
 * end. */
struct refrain_encoded {
	size_t size; /* size of this struct in the library */
	const void *data;
	size_t bytes;
	const char *path; /* path in the dataset, for messages */
	uint64_t index;
	/* name of the column for which the example is decoded */
	const char *field;
};

/* A decoded example of `bytes` bytes. An image is height x width x channels of
 * u8. New members are only added at the end. */
struct refrain_decoded {
	size_t size; /* size of this struct in the library */
	void *data;
	size_t bytes;
	uint32_t width, height, channels;
	/* The type and shape of an array. The library sets both to 0, which
	 * is u8 and bytes or an image, and refuses other values. */
	int32_t type; /* enum refrain_type */
	uint32_t ndim, reserved;
	uint64_t shape[6];
};

/*
 * The configuration of a loader. Initialise it with refrain_config_init().
 * Every member has the default 0, except those marked required; `size` is
 * sizeof(struct refrain_config). New members are only added at the end. A
 * library that is older than the header accepts the longer struct if the
 * members it does not know are zero. refrain_open() copies what the pointers
 * point to, except for `ctx` and `alloc_ctx`.
 */
struct refrain_config {
	size_t size;

	/* The dataset: a path, or several, one in a line; required. Several
	 * datasets become one: its examples are those of the first one, then
	 * those of the second, and so on, and classes of the same name are one
	 * class. See also `mix`. */
	const char *dataset;
	int32_t source; /* enum refrain_source */
	/* LIST: the directory to which paths are relative; NULL: the list's own
	 * directory. Lines are "PATH", "PATH<TAB>LABEL" or the output of
	 * `refrain index`; empty lines and lines that begin with '#' are
	 * skipped. A path listed twice makes two examples. Labels are class
	 * names, numbered in bytewise order, unless all of them are decimal
	 * numbers below 2^31 without leading zeros, which then are the labels.
	 * The same holds for the text of NAME.cls in a tar. */
	const char *root;
	uint32_t record_bytes; /* RAW: size of a record with its label */
	uint32_t label_bytes;  /* RAW: size of the little-endian label that
				  begins a record; at most 8 */

	/* The stream. */
	uint32_t batch;	 /* examples in a step; required */
	uint32_t epochs; /* number of epochs; 0: 1 */
	uint64_t seed;	 /* seed for shuffling and augmentation */
	/* the echo factor e >= 1, rounded to the nearest p/q with q <= 64; 0:
	 * 1; REFRAIN_ECHO_AUTO: see echo_max */
	double echo;
	int32_t echo_point; /* enum refrain_echo_point */
	/* maximum number of examples whose echoes are not all served; 0: the
	 * larger of 16 * batch and 1024 or, with REFRAIN_ECHO_AUTO, the minimum
	 * that it needs if that is more */
	uint32_t window;
	/* minimum number of steps between servings of one example; 0: 1 */
	uint32_t min_lag;
	/* If not 0, shuffle only within each `shuffle_window` examples and keep
	 * the windows in order, for media that must be read in sequence. */
	uint32_t shuffle_window;
	/* this rank, and the number of ranks; world 0: 1 */
	uint32_t rank, world;
	int32_t last;	/* enum refrain_last */
	uint32_t flags; /* REFRAIN_FLAG_... */

	/* The samples. */
	/* size of a sample in pixels; one of them 0: equal to the other; both
	 * 0: 224 */
	uint32_t height, width;
	int32_t type;	 /* enum refrain_type */
	int32_t layout;	 /* enum refrain_layout */
	int32_t augment; /* enum refrain_augment */
	/* F16, F32: mean and standard deviation to normalise with, for values
	 * in 0..1. All 0: the values for ImageNet. Set both or neither, and
	 * write -0.0F for a mean of 0 */
	float mean[3], std[3];
	float area_min, area_max; /* crop area as a fraction of the image; 0:
				     0.08 and 1 */
	float aspect_min, aspect_max; /* crop aspect ratio; 0: 3/4 and 4/3 */
	float jitter[3]; /* brightness, contrast, saturation: factors
			    from 1 - x to 1 + x; 0: none */
	uint32_t cutout; /* side of a grey square in pixels; 0: none */

	/* Callbacks for examples that are not images. Both are called from
	 * several threads, and their result must depend only on their
	 * arguments.
	 *
	 * decode() writes at most decoded_max_bytes to out->data, sets
	 * out->bytes (and width, height and channels, for an image to be
	 * augmented), keeps the other members, and returns 0 or -errno. If it
	 * returns REFRAIN_DECLINE, the library decodes the example as a JPEG
	 * or PNG, regardless of decoded_max_bytes.
	 *
	 * augment_fn() turns a decoded example into sample_bytes bytes of a
	 * batch. Without it, examples that have no shape are copied. */
	int (*decode)(void *ctx, const struct refrain_encoded *in,
		struct refrain_decoded *out);
	int (*augment_fn)(void *ctx, const struct refrain_decoded *in,
		uint64_t seed, void *out, size_t sample_bytes);
	void *ctx;
	size_t decoded_max_bytes;
	size_t sample_bytes; /* size of a sample in a batch; 0: that of an
				image, or of a RAW record without its label */

	/* Damage. See also max_damage. */
	int32_t policy;	     /* enum refrain_policy */
	uint64_t max_pixels; /* limit for one image; 0: 200 million. A JPEG may
				have 4 bytes for each of these pixels, and at
				least 64 MiB */

	/* Resources. */
	/* threads that decode and augment; 0: one for each processor */
	uint32_t threads;
	/* number of batches that are ready or in production; 0: 4 */
	uint32_t batches_ahead;
	/* number of examples that are read at a time; 0: 64 */
	uint32_t reads_ahead;
	/* limit for the memory of the whole loader; 0: a quarter of the memory
	 * that the process may use */
	uint64_t memory_bytes;
	const uint32_t *cpus; /* processors on which the threads may run */
	uint32_t cpu_count;   /* 0: the caller's processors */
	/* nice value of the threads, relative to that of the caller, 0 to 19 */
	int32_t nice;
	/* Allocator of memory for batches, such as pinned memory, aligned to 64
	 * bytes. refrain_open() calls alloc(). The thread that releases the
	 * last batch calls free(). */
	void *(*alloc)(void *ctx, size_t bytes);
	void (*free)(void *ctx, void *p, size_t bytes);
	void *alloc_ctx;

	/* A state from refrain_save() from which to resume; NULL: begin a new
	 * run. */
	const void *state;
	size_t state_bytes;

	/*
	 * With REFRAIN_ECHO_AUTO the run starts with e = 1. The loader measures
	 * the time that the upstream needs for a batch of fresh examples and
	 * the time that the trainer needs for a step. Their ratio is r, and e
	 * follows it up to echo_max. e stays exactly 1 while r is at most 1.04.
	 *
	 * e changes at most once a window, the time in which window - batch
	 * fresh examples are served; a change also takes a window until it has
	 * full effect. After a change of speed e is within 15 % of r in three
	 * windows.
	 *
	 * Only a busy upstream can be timed, so the loader reads in bursts of
	 * 3/8 of a window. A burst is at most 384 examples and a quarter of the
	 * memory, and at least twice reads_ahead. No bursts are needed on a
	 * mount that fetches by the loader's plan, because the mount measures
	 * its fetches.
	 *
	 * The window must be at least (batches_ahead + 4) * batch + 3 *
	 * reads_ahead + 16. Set `window` if these members may differ when a log
	 * is replayed.
	 *
	 * The steps at which e changes depend on timing. refrain_echo_log()
	 * returns them. With that text as echo_log, the loader repeats the same
	 * stream and measures nothing; after the last line e does not change
	 * any more. All ranks must make the same changes, so world > 1 requires
	 * the same echo_log on each rank.
	 */
	/* upper limit for the factor with REFRAIN_ECHO_AUTO; 0: 4 */
	double echo_max;
	/* log of changes to repeat. NULL: measure; "": e stays 1 */
	const char *echo_log;

	/*
	 * refrain_open() fails with -ETIMEDOUT when the storage has not
	 * answered any request for this long, as on a hung mount. The first
	 * scan of millions of files may take longer, as long as it progresses.
	 * Requests that hang are abandoned; memory to which they may still
	 * write is not freed. 0: 30000; -1: wait for ever.
	 */
	int32_t open_timeout_ms;
	/*
	 * Serve examples of similar length together, so that they need little
	 * padding: each block of this number of batches (of all ranks) is
	 * sorted by length, and its batches are shuffled. All ranks have
	 * similar lengths in the same step. The length is the size in bytes of
	 * the first field of text, tokens, audio or an array, or else of the
	 * example's file. Needs an echo factor of 1, or ECHO_BATCH. Not with
	 * mix, shuffle_window or REFRAIN_FLAG_IN_ORDER. 0: no buckets; 64 is a
	 * good value.
	 */
	uint32_t bucket;

	/*
	 * SUBSTITUTE and ZERO_FILL: the fraction of fresh examples that may be
	 * damaged, counted from refrain_open() on. If more are damaged,
	 * refrain_next() fails with -EBADMSG. The check begins with the first
	 * batch after 1000 fresh examples, or at the end of the first epoch if
	 * that is earlier. 0: 0.1; 1: no limit.
	 */
	double max_damage;

	/*
	 * Share batches with other jobs of this user on this host: each batch
	 * is read, decoded and augmented once, and every job with this name
	 * gets it. Each job has the stream that it would have alone. All
	 * members that determine the stream or the pixels must be equal, except
	 * `batch` (see share_batch). With world > 1 each rank has a share of
	 * its own. Handles for evaluation cannot share.
	 *
	 * The first job hosts the share, unless `refrain serve` does. If the
	 * host ends, another job takes over. Jobs run in lock step, at most
	 * batches_ahead apart. The memory of a batch is then shared: writing to
	 * it is an error (SIGSEGV).
	 */
	/* name of the share, up to 64 bytes; NULL: do not share */
	const char *share;
	/* begin when this number of jobs have joined; 0: at once. Jobs that
	 * join later begin with the next epoch: see refrain_step() */
	uint32_t share_jobs;
	/* size of the batches that are shared, a multiple of `batch`; 0:
	 * `batch`. A job gets slices of them. `window` is then the window W of
	 * the shared stream. A job alone has the same stream with a window of W
	 * - share_batch + batch and a min_lag of share_batch / batch */
	uint32_t share_batch;
	/* how the share handles this job if it is slow: enum refrain_share_slow
	 */
	int32_t share_slow;
	/* With SOLO: the longest pause at the end of an epoch, or before the
	 * first batch, in which the others wait for this job; 0: 600. */
	uint32_t share_grace_s;

	/*
	 * The fields of the examples, such as
	 *
	 *	image; boxes max=50 keep=visible; mask; caption=txt optional
	 *
	 * Each field but the image and the class becomes a column of the batch
	 * (boxes: NAME, NAME.class and NAME.which), and all of them follow the
	 * crop of the serving. refrain-load(1) describes the text. Examples
	 * must be images that the library decodes.
	 *
	 *	tokens length=1024
	 *
	 * With tokens, which is then the only field, the dataset is a file .bin
	 * or .npy of tokens, or a directory of such files, and the samples are
	 * windows of length + 1 tokens. In the same way, `array
	 * crop=96x128x128` makes crops of volumes in files .npy. NULL: only the
	 * samples and their classes.
	 */
	const char *fields;
	/* A file of annotations in COCO's JSON. Fields of boxes and points that
	 * name no member take their rows from there. */
	const char *annotations;

	/*
	 * The number of examples in an epoch, over all ranks; 0: the number of
	 * examples of the dataset, the subset or the mix. This member does not
	 * change the stream, in which passes over the dataset follow each
	 * other, each serving every example once. It says only after how many
	 * examples an epoch ends (`epochs`, refrain_batch.epoch and ends_epoch,
	 * refrain_epoch_end()). The number may be larger or smaller than the
	 * dataset.
	 */
	uint64_t epoch_examples;
	/*
	 * Serve only this number of examples of the dataset; 0: all of them.
	 * The examples are drawn at random without replacement, and depend only
	 * on subset_seed. A subset contains all smaller subsets with the same
	 * seed. Not with shuffle_window.
	 */
	uint64_t subset, subset_seed;
	/*
	 * Serve parts of the dataset in fixed proportions, such as
	 *
	 * 	web=9 books=1; 10: web=5 books=5
	 *
	 * Each number is a weight. Of every 10 examples (the sum of the
	 * weights), 9 are of `web`; from epoch 10 on, 5 are. The order within
	 * each 10 is shuffled. Each part is served in passes of its own. A part
	 * is one of several datasets, named by the end of its path (web or
	 * data/web for /data/web; web/a is the directory a in it). If no
	 * dataset has its name, it is a class; otherwise a directory, a shard
	 * or a file of the dataset. `classes=1` gives each class the
	 * weight 1. refrain-load(1) describes the text. Not with subset,
	 * shuffle_window or REFRAIN_FLAG_IN_ORDER. NULL: no mix.
	 */
	const char *mix;

	/*
	 * Pull samples that workers on other hosts have prepared (`refrain
	 * work`). HOST[:PORT] or the path of a socket: a memcached on which
	 * loaders and workers meet. The stream is the same as without it,
	 * and the loader makes itself what does not come in time. Not with
	 * callbacks, fields, a mix, raw records, or a factor that changes.
	 * NULL: no service.
	 */
	const char *service;
	const char *service_dataset; /* the workers' name of the dataset */
	int32_t service_local;	     /* enum refrain_service_local */
	/* File with the secret that the checksums of samples depend on; NULL:
	 * none */
	const char *service_secret;
};

static inline void refrain_config_init(struct refrain_config *c)
{
	memset(c, 0, sizeof(*c));
	c->size = sizeof(*c);
}

/* -- Members by name ---------------------------------------------------- */

/* The format of a member's text. */
enum refrain_member_type {
	REFRAIN_MEMBER_NUMBER = 0, /* a whole number */
	/* real numbers, as 2.5 or 5/2; separate several by commas, or give one
	 * for all */
	REFRAIN_MEMBER_REAL,
	REFRAIN_MEMBER_ECHO,  /* a real number, or "auto" */
	REFRAIN_MEMBER_BYTES, /* a whole number; K, M, G or T may follow */
	REFRAIN_MEMBER_WORD,  /* one of the words in `arg` */
	REFRAIN_MEMBER_FLAG,  /* 1 or 0, true or false, yes or no, on or off */
	REFRAIN_MEMBER_SIDES, /* 224, or WIDTHxHEIGHT */
	REFRAIN_MEMBER_TEXT,  /* kept as a pointer to the caller's text */
};

/* A member of the configuration that can be set from text. */
struct refrain_member {
	size_t size; /* size of this struct */
	/* as in struct refrain_config; each flag has a name of its own, and
	 * "size" sets height and width */
	const char *name;
	/* the placeholder for the value in help texts, or the allowed words as
	 * in "u8|f16|f32"; NULL for a flag */
	const char *arg;
	const char *help; /* description in one sentence */
	int32_t type;	  /* enum refrain_member_type */
	uint32_t count;	  /* number of values that the text has */
	/* The meaning of 0 and the limits of a number; all 0: no limits. */
	double fallback, min, max;
};

/* -- Results ------------------------------------------------------------ */

/* The status of one example in a batch: 0, or the reason why the example was
 * replaced (-EIO, -EBADMSG, -ENOENT, ...). */
typedef int32_t refrain_status;

/*
 * The part of the image that was resized to a sample, in pixels of the upright
 * image at full size. All members are 0 if the library did not make the sample
 * from an image (zero-filled, a record, augment_fn()).
 *
 * A point (px, py) of the image is at (px - x) * W / width and (py - y) * H /
 * height of a sample of W x H, before the flip. A library may return rectangles
 * that begin left of or above the image, or are larger than it; the formula
 * stays the same.
 *
 * A library that is newer than the header may have longer structs: step through
 * the array with refrain_crop_at().
 */
struct refrain_crop {
	/* the rectangle; not in whole pixels for AUGMENT_EVAL */
	double x, y, width, height;
	/* size of the image after its EXIF orientation was applied */
	uint32_t image_width, image_height;
	uint32_t flip;	   /* bits of enum refrain_flip */
	uint32_t reserved; /* always 0 */
};

/*
 * One field of the examples of a batch. If `offsets` and `lengths` are NULL,
 * each example has one row, and shape[0] is the number of examples. If
 * `offsets` is not NULL, the rows of all examples are packed, and example i has
 * the rows offsets[i] to offsets[i + 1] - 1. If only `lengths` is not NULL,
 * each example has room for shape[1] rows, and the first lengths[i] of them are
 * set. No field has such a column yet.
 *
 * CLASSES: i32 class numbers, packed. BOXES: f32 x0, y0, x1, y1 in pixels of
 * the sample, packed; NAME.class has the i32 class number of each box, and
 * NAME.which the i32 number of its row in the annotation. POINTS: f32 x, y, v
 * of each point of a row, packed, with NAME.which. MASK: height x width ids of
 * type u8, u16 or i32. TOKENS: i32 or i64, length + overlap tokens. ARRAY: a
 * crop with all its dimensions, or the bytes of a record. BYTES: u8,
 * packed.
 */
struct refrain_column {
	const char *name;
	int32_t kind; /* enum refrain_kind */
	int32_t type; /* enum refrain_type */
	uint32_t ndim;
	uint32_t flags; /* always 0 */
	uint64_t shape[6];
	const void *data;
	size_t data_bytes;
	size_t row_bytes; /* size of one row in bytes */
	const uint64_t *offsets;
	const uint32_t *lengths;
};

/*
 * A batch. It stays valid until refrain_release(), even after refrain_close().
 * The borrower may write to `data` and `labels`; no other code reads them.
 */
struct refrain_batch {
	size_t size;	   /* size of this struct */
	const void *data;  /* `count` samples of sample_bytes each */
	size_t data_bytes; /* count * sample_bytes */
	size_t sample_bytes;
	/* number of examples, at most the configured batch */
	uint32_t count;
	int32_t type;	/* enum refrain_type */
	int32_t layout; /* enum refrain_layout */
	/* number of dimensions: 4, or 2 for records (count, bytes) and
	 * for tokens */
	uint32_t ndim;
	uint64_t shape[4]; /* dimensions in the order of the layout */
	/* number of the step, counted from 0 in this rank's run */
	uint64_t step;
	uint64_t epoch; /* epoch of the last fresh example in this batch */
	/* number of examples that are served for the first time */
	uint32_t fresh;
	/* 1: the batch has the last fresh example of an epoch */
	uint32_t ends_epoch;
	const int64_t *labels; /* class numbers; -1: the example has none */
	/* indices of the examples that were scheduled */
	const uint64_t *indices;
	/* indices of the examples that are in the batch; an element differs
	 * from `indices` where an example was substituted */
	const uint64_t *substitutes;
	const uint32_t *echoes; /* echo numbers; 0: fresh, 1: first echo, ... */
	const uint64_t *seeds;	/* seeds of the augmentation */
	const refrain_status *status;
	const struct refrain_crop *crops; /* see refrain_crop_at() */
	/* if ends_epoch is 1, the epoch that has ended (the last one if several
	 * have), while `epoch` may already be the next one; otherwise
	 * UINT64_MAX */
	uint64_t ended_epoch;
	/* The fields of the examples: the samples, which are `data` ("image",
	 * or "array" if they are not images), and "class", which is `labels`.
	 * The columns of refrain_config.fields follow in their order. See
	 * refrain_column_at(). */
	const struct refrain_column *columns;
	uint32_t column_count;
	uint32_t column_bytes; /* distance between two columns in memory */
	uint32_t crop_bytes;   /* distance between two crops in memory */
	uint32_t reserved;     /* always 0 */
};

/* Returns the crop of sample i, which must be below b->count. */
static inline const struct refrain_crop *refrain_crop_at(
	const struct refrain_batch *b, size_t i)
{
	return (const struct refrain_crop *)(const void *)((const char *)
								   b->crops +
		i * b->crop_bytes);
}

/* Returns column i of a batch, or NULL if the batch has no such column. */
static inline const struct refrain_column *refrain_column_at(
	const struct refrain_batch *b, size_t i)
{
	if (i >= b->column_count)
		return NULL;
	return (const struct refrain_column *)(const void
			*)((const char *)b->columns + i * b->column_bytes);
}

/* Returns the column with this name, or NULL. */
static inline const struct refrain_column *refrain_column_find(
	const struct refrain_batch *b, const char *name)
{
	size_t i = 0;

	while (i < b->column_count &&
		strcmp(refrain_column_at(b, i)->name, name) != 0)
		i++;
	return refrain_column_at(b, i);
}

/* Time and work of one stage. */
struct refrain_stage {
	uint64_t items, bytes;
	/* CPU time. READ: the reading threads, without the kernel threads of
	 * io_uring. DECODE, AUGMENT: the `threads`, whose time is split in the
	 * ratio of busy_ns, so one may fall a little when the other grows.
	 * TRAINER: 0, because it is not measured */
	uint64_t cpu_ns;
	uint64_t busy_ns; /* wall time in the stage, summed over items */
	/* wall time of waiting for the stage, summed over items */
	uint64_t wait_ns;
};

enum refrain_stage_name {
	REFRAIN_STAGE_READ = 0,
	REFRAIN_STAGE_DECODE,
	REFRAIN_STAGE_AUGMENT,
	REFRAIN_STAGE_TRAINER, /* time between calls of refrain_next() */
	REFRAIN_STAGES,
};

/* Counters since refrain_open(), and rates over the last window of steps. */
struct refrain_stats {
	size_t size;
	/* number of epochs and steps that this handle has completed */
	uint64_t epochs, steps;
	/* numbers of servings in returned batches: first servings, and all */
	uint64_t fresh, served;
	/* files and bytes that were read; a tar member counts as a file */
	uint64_t files_read, bytes_read;
	uint64_t decodes;
	/* decodes that were repeated, because memory was short or after a
	 * restart */
	uint64_t redecodes;
	uint64_t rereads; /* files that were read again, for the same reasons */
	/* Number of fresh examples that failed. The next four members are the
	 * numbers for each cause. A damaged example counts again in each epoch.
	 * See also damaged_examples and substitute_errors. */
	uint64_t errors;
	/* the file could not be opened or read, or is not a regular file */
	uint64_t errors_read;
	/* the file is not an image, or of an unsupported kind */
	uint64_t errors_format;
	uint64_t errors_damaged; /* the file is truncated or corrupt */
	/* the image exceeds max_pixels, the size limit that follows from
	 * max_pixels, or the memory */
	uint64_t errors_too_large;
	/* number of servings that were substituted, or filled with zeros */
	uint64_t substituted, zero_filled;
	/* servings in the last batch of the run, if it was short and was
	 * dropped */
	uint64_t dropped_examples;
	/* echoes that were due when the world changed, and are never served */
	uint64_t dropped_echoes;
	/* pairs of servings of one decoded example in one batch; an example
	 * that is decoded again in the next epoch counts as another one */
	uint64_t in_batch_duplicates;
	uint64_t min_lag_steps;
	double mean_lag_steps;
	double echo_factor; /* the current factor e */
	/* size of the decoded examples that are kept, now and at most */
	uint64_t pool_bytes, pool_bytes_peak;
	/* memory of the whole loader, now and at most */
	uint64_t memory_bytes, memory_bytes_peak;
	uint64_t reads_abandoned; /* reads that hung at refrain_close() */
	struct refrain_stage stages[REFRAIN_STAGES];
	/* time that the busy upstream takes for a batch of fresh examples */
	double t_upstream_ms;
	/* time of a step without the wait for the batch */
	double t_downstream_ms;
	double r; /* t_upstream_ms / t_downstream_ms */
	/* percentage of the time that was spent in waits of refrain_next() */
	double stall_pct;
	uint64_t stream_hash;	/* XXH3 over (index, echo number, seed) of each
				   serving, 8 bytes little endian each */
	const char *bottleneck; /* "read", "decode", "augment", "trainer" */
	/* The echo point right after the slowest stage: "before" or "after".
	 * Never "batch": samples are augmented in place in the batch, so
	 * nothing lies between the two. */
	const char *suggested_point;
	/* number of changes of the factor in the whole run, also before a
	 * restart */
	uint64_t echo_changes;
	/* number of files_read that were read directly from the cache of a
	 * refrain mount */
	uint64_t direct_hits;
	/* The part of in_batch_duplicates in one batch near the end of a run,
	 * in which a fractional echo factor may cause duplicates with any
	 * window. This is the whole of in_batch_duplicates, unless the window
	 * is allowed to be too small or the run has fewer than 2 * batch *
	 * min_lag fresh examples. */
	uint64_t end_duplicates;
	/* number of different examples of the dataset that failed, as scheduled
	 * examples or as substitutes */
	uint64_t damaged_examples;
	uint64_t substitute_errors; /* number of substitutes that failed, too */
	/* With REFRAIN_ECHO_AUTO, a sentence that explains the current factor,
	 * and the number of fresh examples that this rank's run must have for a
	 * first change. Otherwise "" and 0. */
	const char *echo_reason;
	uint64_t echo_needs_fresh;
	/* number of fresh examples of this rank's run that are in no batch,
	 * because of REFRAIN_LAST_DROP or REFRAIN_FLAG_EQUAL_RANKS */
	uint64_t dropped_fresh;
	/* Set with refrain_config.share; otherwise 0. Reads and decodes are
	 * counted in the job that hosts. */
	/* process that hosts the share; 0: this job has no host now */
	uint64_t share_host_pid;
	/* number of jobs in the share now, this one included, as the host last
	 * reported it: it falls when a job leaves */
	uint64_t share_jobs;
	uint64_t share_takeovers; /* number of hosts that have ended */
	uint64_t share_solo; /* 1: this job makes its own batches, because it
				was slow or joined a new host too late */
	/* number of times that this job began to make its own batches */
	uint64_t share_parted;
	/*
	 * The number of things in the dataset that are not examples: files of
	 * other kinds, hidden names, broken links; in a tar, base names without
	 * an image. A directory that was not searched counts as one.
	 * `skipped_classes` is the number of classes without an example. Each
	 * name is the lowest of its kind, or NULL, and is valid until
	 * refrain_close(). Long names are cut in the JSON.
	 */
	uint64_t skipped_files;
	const char *skipped_first;
	uint64_t empty_classes;
	const char *empty_first;
	/* If files are read again: the value of memory_bytes with which hardly
	 * any file would be; otherwise 0 */
	uint64_t memory_wanted_bytes;
	/* number of times that another daemon has replaced that of the
	 * dataset's mount, and was sent the plan */
	uint64_t mount_returns;
	/* number of rows that `fields` had no room for (option max), in all
	 * servings that were made */
	uint64_t rows_cut;
	/* bytes of pixels that all decodes have produced: for a JPEG or PNG, 3
	 * for each pixel of the region that the example's servings show, at the
	 * scale of the decode, and of a margin of columns that a JPEG may
	 * need; otherwise the bytes that decode() has returned */
	uint64_t decoded_bytes;
	/* number of tokens of the dataset that are in no window of a pass; see
	 * refrain_config.fields */
	uint64_t tail_tokens;
	/* With refrain_config.service; else 0. */
	/* servings whose samples workers have made; the loader has made the
	 * others itself */
	uint64_t service_remote;
	/* servings that the loader made itself although a worker had begun
	 * them, because they would have come too late */
	uint64_t service_late;
	uint64_t service_missing; /* samples that were not in their store */
	uint64_t service_bad;	  /* samples with a wrong checksum or size */
	uint64_t service_failed;  /* samples whose store did not answer */
	uint64_t service_bytes;	  /* bytes of the samples that were pulled */
	uint64_t service_live;	  /* 1: the board answers */
	uint64_t service_workers; /* number of workers on the board now */
};

/* -- Calls -------------------------------------------------------------- */

/*
 * Set the named member of the configuration from text. '-' may stand for '_' in
 * the name; "0" selects the default, except for a mean, which becomes 0. A
 * REFRAIN_MEMBER_TEXT takes any text, which must stay valid until
 * refrain_open(). Returns -ENOENT for an unknown name, -EINVAL for an invalid
 * text, and -E2BIG if config->size does not cover the member;
 * refrain_message(NULL) then has the message.
 */
REFRAIN_API int refrain_config_set(
	struct refrain_config *config, const char *name, const char *text);

/*
 * Describe the n-th member that refrain_config_set() knows, counted from 0.
 * Fills the first out->size bytes of *out; set out->size before the call.
 * Returns 1, or 0 if there is no such member.
 */
REFRAIN_API int refrain_config_member(uint32_t n, struct refrain_member *out);

/*
 * Open a dataset and begin to produce the first batches. The list of its
 * examples, its catalogue, is kept in $XDG_CACHE_HOME/refrain (or
 * ~/.cache/refrain) and reused until a directory, list or shard changes. The
 * file may be removed at any time. On failure *out is NULL and
 * refrain_message(NULL) has the message:
 *
 * 	-EINVAL		a member of the configuration, which the message names
 * 	-E2BIG		the configuration has members this library does not know
 * 	-ENOENT, -ENOTDIR, -EACCES	the dataset
 * 	-ENODATA	the dataset has no examples
 * 	-ENOMEM		memory_bytes does not even hold the batches, or the
 * 			process is out of memory
 * 	-EBADMSG	the state is damaged
 * 	-ESTALE		the state belongs to another dataset or configuration;
 * 			the message names the member
 * 	-ETIMEDOUT	the storage does not answer: see open_timeout_ms
 */
REFRAIN_API int refrain_open(
	struct refrain_loader **out, const struct refrain_config *config);

/*
 * Lend the next batch: returns 1 and sets *out, or returns 0 at the end of the
 * run. A timeout_ms of 0 means not to wait, and -1 to wait without a limit.
 * Errors:
 *
 * 	-ETIMEDOUT	no batch in time; the message names the stage and the
 * 			file that it waits for
 * 	-EBUSY		all batches are lent; release one
 * 	-ESHUTDOWN	refrain_close() was called
 *
 * Any other error has stopped the loader. The message names the file, and every
 * later call returns the same error.
 */
REFRAIN_API int refrain_next(struct refrain_loader *l,
	const struct refrain_batch **out, int timeout_ms);

/*
 * Like refrain_next(), but copy the samples and labels into the caller's memory
 * and lend nothing. Returns the number of examples, 0 or -errno as above,
 * -ENOSPC if the memory does not hold a full batch, or -EINVAL if `fields` is
 * set, because their columns would be lost. labels may be NULL.
 */
REFRAIN_API int refrain_next_into(struct refrain_loader *l, void *data,
	size_t data_bytes, int64_t *labels, size_t label_count, int timeout_ms);

/* Give a batch back, from any thread, even after refrain_close(). NULL is
 * allowed. */
REFRAIN_API void refrain_release(const struct refrain_batch *b);

/*
 * Return an eventfd that polls readable while refrain_next() would not wait.
 * The loader owns it: do not read or close it.
 */
REFRAIN_API int refrain_fd(struct refrain_loader *l);

/*
 * Save the state after the last returned batch, in at most REFRAIN_STATE_MAX
 * bytes. Returns the number of bytes, -ENOSPC if `size` is too small, or
 * -EAGAIN if the echo factor has changed too often to be saved at this step:
 * call it again after the next batch.
 */
#define REFRAIN_STATE_MAX 256
REFRAIN_API int refrain_save(struct refrain_loader *l, void *buf, size_t size);

/* Save the state before the batch of `step`, to resume with that batch. Returns
 * like refrain_save(), or -ERANGE if the run has no such step or if e has
 * changed too often since that step. */
REFRAIN_API int refrain_save_at(
	struct refrain_loader *l, uint64_t step, void *buf, size_t size);

/*
 * With REFRAIN_ECHO_AUTO, write the changes of e that this handle has made, in
 * the format of refrain_config.echo_log: lines "STEP P/Q" of at most 32 bytes,
 * NUL-terminated. Returns the length, or -ENOSPC. A change may be in the log
 * some steps before the step at which it begins.
 *
 * Changes made before a restart are not included. They are the first
 * refrain_stats.echo_changes lines of the log of the earlier handle; read that
 * counter right after refrain_open() with the state.
 */
REFRAIN_API int refrain_echo_log(
	struct refrain_loader *l, char *buf, size_t size);

/*
 * Fill the first out->size bytes of *out; set out->size before the call.
 * Returns 0, or -EINVAL if out->size does not cover the member `size` itself.
 */
REFRAIN_API int refrain_stats_get(
	struct refrain_loader *l, struct refrain_stats *out);

/*
 * Write the statistics as one NUL-terminated line of JSON. Returns its length,
 * or -ENOSPC. 8 KiB are enough.
 */
REFRAIN_API int refrain_stats_json(
	struct refrain_loader *l, char *buf, size_t size);

/*
 * Get the memory in which the batches of a share lie, for functions such as
 * cudaHostRegister(). The memory is read-only. Returns 0, or -ENODATA without a
 * share or before the first batch. When share_takeovers has changed, new
 * batches lie in other memory; the old memory stays as long as one of its
 * batches is lent.
 */
REFRAIN_API int refrain_memory(
	struct refrain_loader *l, const void **base, size_t *bytes);

/* Return the number of examples and of classes in the dataset. */
REFRAIN_API uint64_t refrain_examples(struct refrain_loader *l);
REFRAIN_API uint64_t refrain_classes(struct refrain_loader *l);
/* Returns the number of batches that are left in this rank's run, the next one
 * included. With REFRAIN_ECHO_AUTO this assumes that the factor stays as it is.
 */
REFRAIN_API uint64_t refrain_steps_left(struct refrain_loader *l);
/* Returns the number of the next batch in the run. */
REFRAIN_API uint64_t refrain_step(struct refrain_loader *l);

/*
 * Returns the number of steps until `epoch` (counted from 0) is over: the last
 * of these steps has the last fresh example of the epoch. With
 * REFRAIN_FLAG_PAD_RANKS the number is the same on all ranks. Echoes of the
 * run's last epoch may follow. So with e > 1 epochs can have very different
 * numbers of steps. To divide a run of n epochs into equal parts instead, end
 * part k at step (k + 1) * total / n, where total is refrain_step() +
 * refrain_steps_left() after refrain_open().
 */
REFRAIN_API uint64_t refrain_epoch_end(
	struct refrain_loader *l, uint64_t epoch);

/*
 * Get the index of the example that this rank serves fresh as number f, counted
 * from 0 at the beginning of its run, or at the step from which another world
 * has continued the run. The order is known before any example is read. Returns
 * 0; -ERANGE if the run has no such example, or if f is more than a few changes
 * of the echo factor ago; or -EINVAL if index is NULL.
 */
REFRAIN_API int refrain_fresh(
	struct refrain_loader *l, uint64_t f, uint64_t *index);

/* Returns the name of a class (any bytes, then NUL), or NULL. The loader owns
 * the name. `bytes` may be NULL. */
REFRAIN_API const char *refrain_class_name(
	struct refrain_loader *l, int64_t label, size_t *bytes);

/* Like refrain_class_name(), for the classes of the boxes in
 * refrain_config.annotations. */
REFRAIN_API const char *refrain_annotation_class(
	struct refrain_loader *l, int64_t label, size_t *bytes);

/* Returns the path of an example in the dataset, or NULL. The loader owns the
 * path. */
REFRAIN_API const char *refrain_path(struct refrain_loader *l, uint64_t index);

/* Like refrain_path(), but returns the path of the file that contains the
 * example: the path of the shard, if the example is in a shard. The path is
 * relative to the dataset's directory, or to refrain_config.root. */
REFRAIN_API const char *refrain_file(struct refrain_loader *l, uint64_t index);

/*
 * Returns the file of part `part` of an example, relative to its dataset, or
 * NULL if there is no such part. Part 0 is that of refrain_file(); the others
 * are the members that the fields need, 1 to 7, some of which an example may
 * lack. *dataset is set to the number of the example's dataset in
 * refrain_config.dataset, from 0; `dataset` may be NULL.
 */
REFRAIN_API const char *refrain_part_file(struct refrain_loader *l,
	uint64_t index, uint32_t part, uint32_t *dataset);

/* Returns the message of the last call that failed on this handle. If the
 * handle is NULL, returns the message of this thread's last failure without a
 * handle, such as a failed refrain_open(). Never returns NULL. The text is
 * valid until this thread's next call on the handle. */
REFRAIN_API const char *refrain_message(struct refrain_loader *l);

/* The example at which the last refrain_next() has failed. */
struct refrain_failure {
	size_t size;	/* size of this struct */
	int32_t error;	/* -errno */
	int32_t stage;	/* enum refrain_stage_name */
	uint64_t index; /* number of the example, for refrain_path() */
	uint64_t step;	/* step of the example's batch */
};

/* Fill the first out->size bytes of *out; set out->size before the call.
 * Returns 1, or 0 if refrain_next() has not failed at an example. */
REFRAIN_API int refrain_failure_get(
	struct refrain_loader *l, struct refrain_failure *out);

/*
 * Close the loader. Calls that wait return -ESHUTDOWN. Lent batches stay valid.
 * Returns within a second, even if reads or callbacks hang. Returns 0, or the
 * number of reads and callbacks that hang and were abandoned. Their memory is
 * not freed, and callbacks and their contexts must stay valid. NULL is allowed.
 */
REFRAIN_API int refrain_close(struct refrain_loader *l);

/* Returns the version of the library, in the format of REFRAIN_VERSION. */
REFRAIN_API int refrain_version(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
/*
 * loader-bare: measures the least that a loader could cost. One thread, all
 * files in memory, no queue, no lock, no budget: the same examples in the same
 * order with the same crops as refrain's loader makes of these options, decoded
 * and augmented by the same functions into batches that are reused. --hash
 * shows that its batches are the loader's. With echoes, the decoded regions are
 * kept until the last serving.
 *
 * Prints one line of JSON: the processor time of a served image, and its parts:
 * decoding an image's region (that of all its crops, with the header), and the
 * rest of a serving (resize, mirror, normalise, layout). Each is timed inside
 * the loop, so with the processor's caches as they are there.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "loader/dataset/dataset.h"
#include "loader/image/image.h"
#include "loader/core/settings.h"
#include "bare_fields.h"
#include "loader_options.h"
#include "common/schedule/schedule.h"

#define BATCHES 4 /* number of batches that are written in turn */
/* spare memory that is large enough for most images */
#define SPARE_BYTES ((size_t)1 << 20)
/* steps after which caches and memory are in a steady state */
#define SETTLE_STEPS 8

struct file {
	uint8_t *data;
	size_t bytes;
};

/* The decoded pixels of an example, which are kept until its last serving. */
struct held {
	struct image_info info;
	struct image image;
	struct image ids; /* ids of the mask, in the memory after the image */
	size_t bytes;	  /* length of image.data; 0: nothing is decoded */
};

/* Memory of images that are no longer needed. The newest is reused first,
 * because it is still in the processor's cache. */
struct spare {
	uint8_t *data;
	size_t bytes;
};

struct part {
	uint64_t ns, n;
};

struct bare {
	struct loader_options *o;
	struct settings s;
	struct dataset *dataset;
	struct schedule schedule;
	struct file *files;
	uint64_t files_n;
	struct held *ring; /* examples, indexed by their fresh number */
	uint64_t ring_n;
	struct spare *spares; /* array of at most ring_n elements */
	uint64_t spares_n;
	uint8_t *batches[BATCHES];
	uint8_t *areas[BATCHES]; /* memory for the columns of fields */
	struct bare_fields *fields;
	struct decoder *decoder;
	struct augmenter *augmenter;
	struct loader_usage usage;
	struct part decode, rest, full;
	uint64_t images, hash;
};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "loader-bare: %s\n", what);
	exit(EXIT_FAILURE);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* -- Before the measurement ------------------------------------------------ */

static struct spare spare_new(size_t bytes)
{
	struct spare spare = {.bytes = (bytes / SPARE_BYTES + 1) * SPARE_BYTES};

	spare.data = aligned_alloc(64, spare.bytes);
	if (!spare.data)
		die("out of memory");
	/* let the kernel map the pages now */
	memset(spare.data, 1, spare.bytes);
	return spare;
}

static void load(int dir_fd, const char *path, struct file *f)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	f->bytes = (size_t)st.st_size;
	f->data = malloc(f->bytes);
	if (!f->data || read(fd, f->data, f->bytes) != st.st_size)
		die(path);
	(void)close(fd); /* cannot lose data: the file was only read */
}

static void load_files(struct bare *b)
{
	struct dataset_options options = {.path = b->s.c.dataset,
		.source = REFRAIN_SOURCE_FOLDER,
		.members = *b->s.members.text ? b->s.members.text : NULL,
		.annotations = b->s.c.annotations};
	struct error err;

	if (dataset_open(&b->dataset, &options, &err) < 0)
		die(err.msg);
	b->files_n = dataset_count(b->dataset);
	b->files = calloc(b->files_n, sizeof(*b->files));
	if (!b->files)
		die("out of memory");
	for (uint64_t i = 0; i < b->files_n; i++) {
		struct example e;

		dataset_example(b->dataset, i, &e);
		load(e.dir, e.file, &b->files[i]);
	}
	b->fields = bare_fields_new(&b->s, b->dataset);
}

static void make_schedule(struct bare *b)
{
	struct schedule_config config;
	struct schedule_facts facts;
	struct error err;

	settings_schedule(&b->s, b->files_n, NULL, &config);
	if (schedule_init(&b->schedule, &config, &err) < 0)
		die(err.msg);
	schedule_facts(&b->schedule, &facts);
	if (b->o->steady) {
		b->o->skip = (unsigned)facts.ramp_steps + SETTLE_STEPS;
		b->o->steps = (unsigned)(facts.steps - facts.drain_steps);
	}
	b->ring_n = 2 * (facts.window + b->s.c.batch);
	b->ring = calloc(b->ring_n, sizeof(*b->ring));
	b->spares = calloc(b->ring_n, sizeof(*b->spares));
	if (!b->ring || !b->spares)
		die("out of memory");
	for (uint64_t i = 0; i <= facts.pool_max; i++)
		b->spares[b->spares_n++] = spare_new(0);
}

static void make_tools(struct bare *b)
{
	struct decode_limits limits = {.max_pixels = b->s.c.max_pixels,
		.max_memory_bytes = UINT64_C(1) << 32,
		.max_scans = 500};
	size_t bytes = b->s.sample_bytes * b->s.c.batch;

	/* Let malloc() keep its memory, so that the kernel's work for it is not
	 * measured. */
	/* the maximum of this threshold */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 25);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	if (decoder_new(&b->decoder, &limits) < 0 ||
		augmenter_new(&b->augmenter, &b->s.augment) < 0)
		die("out of memory");
	for (unsigned i = 0; i < BATCHES; i++) {
		b->batches[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
		if (!b->batches[i])
			die("out of memory");
		/* let the kernel map the pages now */
		memset(b->batches[i], 1, bytes);
		if (!b->s.columns.bytes)
			continue;
		b->areas[i] = aligned_alloc(64, b->s.columns.bytes);
		if (!b->areas[i])
			die("out of memory");
		memset(b->areas[i], 1, b->s.columns.bytes);
	}
}

/* -- The work -------------------------------------------------------------- */

/* Find the region of the image that the crops of all servings need, and the
 * scale for decoding it. */
static unsigned find_region(const struct bare *b, const struct held *h,
	const struct schedule_slot *slot, struct rect *region)
{
	unsigned least = 8;

	*region = (struct rect){0};
	for (uint32_t k = 0; k < slot->servings; k++) {
		struct crop crop;
		unsigned denom;

		crop_of(&b->s.augment,
			schedule_augment_seed(&b->schedule, slot, k),
			h->info.width, h->info.height, &crop);
		crop_union(region, &crop);
		denom = crop_denom(
			&b->s.augment, &crop, h->info.width, h->info.height);
		if (denom < least)
			least = denom;
	}
	return least;
}

static void lay_out(struct bare *b, struct held *h, uint64_t index,
	const struct rect *region, unsigned denom)
{
	size_t image = decode_layout(&h->info, region, denom, &h->image);
	size_t behind = (image + 63) / 64 * 64;
	size_t bytes =
		behind + bare_fields_lay_out(b->fields, index, region, &h->ids);
	struct spare spare = {0};

	if (b->spares_n > 0)
		spare = b->spares[--b->spares_n];
	if (bytes > spare.bytes) {
		free(spare.data);
		spare = spare_new(bytes);
	}
	h->image.data = spare.data;
	h->ids.data = spare.data + behind;
	h->bytes = spare.bytes;
}

static void let_go(struct bare *b, struct held *h)
{
	b->spares[b->spares_n++] = (struct spare){h->image.data, h->bytes};
	*h = (struct held){0};
}

static void decode(
	struct bare *b, struct held *h, const struct schedule_slot *slot)
{
	const struct file *f = &b->files[slot->index];
	struct rect region;
	struct error err;
	unsigned denom;

	if (decode_probe(b->decoder, f->data, f->bytes, &h->info, &err) < 0)
		die(err.msg);
	denom = find_region(b, h, slot, &region);
	lay_out(b, h, slot->index, &region, denom);
	if (decode_region(b->decoder, f->data, f->bytes, &h->info, &h->image,
		    &err) < 0)
		die(err.msg);
	bare_fields_decode(b->fields, slot->index, &h->ids);
}

static void map_fields(struct bare *b, const struct schedule_slot *slot,
	const struct held *h, const struct crop *crop, void *area,
	uint32_t place)
{
	struct field_view view = {
		.x = crop->x,
		.y = crop->y,
		.width = crop->width,
		.height = crop->height,
		.image_width = h->info.width,
		.image_height = h->info.height,
		.sample_width = b->s.c.width,
		.sample_height = b->s.c.height,
		.flip = crop->flip,
	};

	bare_fields_map(b->fields, slot->index, &h->ids, &view, area, place);
}

static void serve(struct bare *b, const struct schedule_slot *slot,
	unsigned batch, uint32_t place, bool measured)
{
	uint8_t *sample = b->batches[batch] + place * b->s.sample_bytes;
	struct held *h = &b->ring[slot->fresh % b->ring_n];
	uint64_t begin = cpu_ns(), decoded = begin;
	struct crop crop;

	if (slot->echo == 0) {
		decode(b, h, slot);
		decoded = cpu_ns();
	}
	crop_of(&b->s.augment, slot->augment_seed, h->info.width,
		h->info.height, &crop);
	if (augment(b->augmenter, &h->image, &crop, sample) < 0)
		die("out of memory");
	map_fields(b, slot, h, &crop, b->areas[batch], place);
	if (slot->last)
		let_go(b, h);
	if (!measured)
		return;
	b->rest.ns += cpu_ns() - decoded;
	b->rest.n++;
	b->decode.ns += decoded - begin;
	b->decode.n += slot->echo == 0;
}

static void hash_batch(struct bare *b, unsigned batch, uint32_t n)
{
	b->hash = hash64(b->batches[batch], n * b->s.sample_bytes, b->hash);
	for (unsigned i = 0; i < b->s.columns.count; i++) {
		struct refrain_column c;

		columns_describe(
			&b->s.columns, i, b->areas[batch], 0, n, NULL, &c);
		b->hash = hash64(c.data, c.data_bytes, b->hash);
	}
}

static void run(struct bare *b)
{
	struct schedule_slot *slots = calloc(b->s.c.batch, sizeof(*slots));
	struct schedule_cursor cursor;
	uint64_t step = 0;
	uint32_t n;

	if (!slots || schedule_seek(&b->schedule, &cursor, 0) < 0)
		die("out of memory");
	loader_usage_now(&b->usage);
	while ((!b->o->steps || step < b->o->steps) &&
		(n = schedule_next(&b->schedule, &cursor, slots)) > 0) {
		unsigned batch = step % BATCHES;
		bool measured = step++ >= b->o->skip;

		for (uint32_t i = 0; i < n; i++)
			serve(b, &slots[i], batch, i, measured);
		columns_pack(&b->s.columns, b->areas[batch], n);
		if (b->o->hash)
			hash_batch(b, batch, n);
		b->images += measured ? n : 0;
		if (step == b->o->skip)
			loader_usage_now(&b->usage);
	}
	loader_usage_since(&b->usage);
	free(slots);
}

/* Measure how long it takes to decode whole images. */
static void run_full(struct bare *b)
{
	for (uint64_t i = 0; i < b->files_n; i++) {
		const struct file *f = &b->files[i];
		uint64_t begin = cpu_ns();
		struct held h = {.bytes = 0};
		struct rect all = {0};
		struct error err;

		if (decode_probe(b->decoder, f->data, f->bytes, &h.info, &err) <
			0)
			die(err.msg);
		all.width = h.info.width;
		all.height = h.info.height;
		lay_out(b, &h, i, &all, 1);
		if (decode_region(b->decoder, f->data, f->bytes, &h.info,
			    &h.image, &err) < 0)
			die(err.msg);
		b->full.ns += cpu_ns() - begin;
		b->full.n++;
		let_go(b, &h);
	}
}

/* -- The result ------------------------------------------------------------ */

static double ms(const struct part *p)
{
	return p->n ? (double)p->ns / 1e6 / (double)p->n : 0;
}

static void print(const struct bare *b)
{
	double n = (double)(b->images ? b->images : 1) * 1e6;

	printf("{\"what\": \"bare\", \"echo\": %g, \"images\": %" PRIu64
	       ", \"decodes\": %" PRIu64
	       ", \"cpu_ms\": %.5f, \"wall_ms\": %.5f",
		b->o->config.echo, b->images, b->decode.n,
		(double)b->usage.cpu_ns / n, (double)b->usage.wall_ns / n);
	printf(", \"decode_ms\": %.5f, \"augment_ms\": %.5f, \"full_ms\": %.5f",
		ms(&b->decode), ms(&b->rest), ms(&b->full));
	printf(", \"skip\": %u, \"steps\": %u", b->o->skip, b->o->steps);
	printf(", \"faults\": %" PRIu64 ", \"peak_bytes\": %" PRIu64,
		b->usage.faults, loader_peak_bytes());
	if (b->o->hash)
		printf(", \"hash\": \"%016" PRIx64 "\"", b->hash);
	printf("}\n");
}

static void release(struct bare *b)
{
	for (unsigned i = 0; i < BATCHES; i++)
		free(b->batches[i]);
	for (unsigned i = 0; i < BATCHES; i++)
		free(b->areas[i]);
	bare_fields_free(b->fields);
	for (uint64_t i = 0; i < b->ring_n; i++)
		free(b->ring[i].image.data);
	for (uint64_t i = 0; i < b->spares_n; i++)
		free(b->spares[i].data);
	for (uint64_t i = 0; i < b->files_n; i++)
		free(b->files[i].data);
	free(b->spares);
	free(b->ring);
	free(b->files);
	augmenter_free(b->augmenter);
	decoder_free(b->decoder);
	dataset_close(b->dataset);
}

int main(int argc, char **argv)
{
	struct loader_options o;
	struct bare b = {.o = &o};
	struct error err;
	bool done;
	int rc = loader_options_parse(&o, "loader-bare",
		"Time the same work as refrain's loader in a bare loop.", argc,
		argv, &done);

	if (done)
		return rc;
	if (settings_init(&b.s, &o.config, &err) < 0)
		die(err.msg);
	load_files(&b);
	make_tools(&b);
	make_schedule(&b);
	run(&b);
	if (o.full)
		run_full(&b);
	print(&b);
	release(&b);
	return 0;
}

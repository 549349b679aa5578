/* SPDX-License-Identifier: MIT */
/*
 * Checks the configuration and fills in defaults. The table in settings_table.c
 * has the limits of each member; this file checks combinations of members. The
 * functions have no state, but they ask the system for its memory and
 * processors.
 */
#include "loader/core/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/cgroup.h"
#include "common/base/hash.h"
#include "loader/core/mix_text.h"
#include "loader/core/settings_table.h"

/* -- Defaults that depend on the system or on each other ------------------- */

static unsigned processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	return 1;
}

/* Returns the maximum memory of this process in bytes, and sets *what to the
 * limit that determines it. */
static uint64_t memory_of_process(const char **what)
{
	static const struct {
		int which;
		const char *what;
	} limits[] = {
		{RLIMIT_AS, "the address space of this process (ulimit -v)"},
		{RLIMIT_DATA, "the data of this process (ulimit -d)"},
	};
	uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		(uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t group = cgroup_memory_limit("");
	struct rlimit rl;

	*what = "the memory of this machine";
	for (unsigned i = 0; i < 2; i++)
		if (getrlimit(limits[i].which, &rl) == 0 &&
			rl.rlim_cur < most) {
			most = rl.rlim_cur;
			*what = limits[i].what;
		}
	if (group >= most)
		return most;
	*what = "the limit of the memory control group";
	return group;
}

static bool any_set(const float of[3])
{
	return of[0] != 0.F || of[1] != 0.F || of[2] != 0.F;
}

/* Has the caller set the mean? It may write a mean of 0 as -0, because 0 means
 * that a member is not set. */
static bool mean_given(const float mean[3])
{
	return any_set(mean) || signbit(mean[0]) || signbit(mean[1]) ||
		signbit(mean[2]);
}

/* Mean and std are either both set by the caller or both those of ImageNet. It
 * is an error to set only a mean: the table would replace the std by 1. */
static int fill_in_normalise(struct refrain_config *c, struct error *err)
{
	static const float mean[3] = {0.485F, 0.456F, 0.406F};
	static const float std[3] = {0.229F, 0.224F, 0.225F};

	if (!any_set(c->mean) && !any_set(c->std)) {
		memcpy(c->mean, mean, sizeof(mean));
		memcpy(c->std, std, sizeof(std));
	}
	if (!mean_given(c->mean))
		return error_set(err, -EINVAL,
			"mean is not set: mean and std must be set together; "
			"write -0.0 for a mean of 0");
	for (unsigned i = 0; i < 3; i++) {
		if (c->std[i] == 0.F)
			return error_set(err, -EINVAL,
				"std[%u] is 0: mean and std must be set "
				"together",
				i);
		if (c->mean[i] == 0.F)
			c->mean[i] = 0.F; /* a saved state hashes 0, not -0 */
	}
	return 0;
}

static void fill_in(struct settings *s)
{
	struct refrain_config *c = &s->c;

	if (!c->height)
		c->height = c->width;
	if (!c->width)
		c->width = c->height;
	if (!c->threads)
		c->threads = processors();
	if (!c->memory_bytes)
		c->memory_bytes = memory_of_process(&s->memory_of) / 4;
	if (!c->max_pixels)
		c->max_pixels = 200000000;
}

/* -- Echo factors that change ---------------------------------------------- */

/*
 * Sizes of the bursts in which examples are read ahead, in examples. A burst
 * has at least (BURSTS_AHEAD - 1) * reads_ahead examples. So during half of it,
 * further reads are waiting, and the source is fully busy. The next burst
 * begins when only reads_ahead examples of the last one are left. Longer bursts
 * give better measurements, but each window must contain several bursts.
 */
#define BURSTS_AHEAD 3
#define BURST_MOST 384
#define AHEAD_SPARE 16

static int take_echo(struct settings *s, struct error *err)
{
	struct refrain_config *c = &s->c;

	s->changes = c->echo == REFRAIN_ECHO_AUTO;
	s->measures = s->changes && !c->echo_log;
	if (s->changes)
		c->echo = 1;
	else if (c->echo_log || c->echo_max != 0.)
		return error_set(err, -EINVAL,
			"%s is set, but echo is not REFRAIN_ECHO_AUTO",
			c->echo_log ? "echo_log" : "echo_max");
	return 0;
}

/*
 * Returns the shortest window that works with a changing factor. The number of
 * servings of an example is fixed when it is planned. So a window must be
 * longer than what is planned ahead, or a change would take effect only after
 * the next change is due.
 */
static uint64_t least_window(const struct refrain_config *c)
{
	return ((uint64_t)c->batches_ahead + 4) * c->batch +
		(uint64_t)BURSTS_AHEAD * c->reads_ahead + AHEAD_SPARE;
}

static uint32_t burst_of(const struct refrain_config *c, uint64_t window)
{
	uint64_t least = (uint64_t)(BURSTS_AHEAD - 1) * c->reads_ahead;
	uint64_t some = window * 3 / 8;

	if (some > BURST_MOST)
		some = BURST_MOST;
	return (uint32_t)(some > least ? some : least);
}

static int check_changes(const struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;

	if (!s->changes)
		return 0;
	if (s->measures && c->world > 1)
		return error_set(err, -EINVAL,
			"echo is auto with world %u: all ranks must change it "
			"at the same steps; give all of them the same "
			"echo_log, or a number, such as the r of a run with "
			"world 1",
			c->world);
	if (c->augment == REFRAIN_AUGMENT_EVAL)
		return error_set(err, -EINVAL,
			"echo is auto: evaluation serves each example once");
	if (c->window && c->window < least_window(c))
		return error_set(err, -EINVAL,
			"window is %u: with echo auto, batches_ahead %u and "
			"reads_ahead %u it must be at least %" PRIu64,
			c->window, c->batches_ahead, c->reads_ahead,
			least_window(c));
	return 0;
}

/* -- Members that depend on each other ------------------------------------- */

/* The least value of encoded_max, and the bytes for each pixel. The largest
 * JPEGs have about 4 bytes for each pixel. But even a small image may have
 * large metadata, such as a video clip. */
#define ENCODED_LEAST ((uint64_t)64 << 20)
#define ENCODED_PIXEL_BYTES 4

static uint64_t encoded_max(const struct settings *s)
{
	uint64_t pixels = s->c.max_pixels;

	if (!s->library_decodes || pixels > UINT64_MAX / ENCODED_PIXEL_BYTES)
		return UINT64_MAX;
	return pixels * ENCODED_PIXEL_BYTES > ENCODED_LEAST
		? pixels * ENCODED_PIXEL_BYTES
		: ENCODED_LEAST;
}

/* Tokens and arrays are read as they are, so settings of other examples are
 * refused. */
static int check_no_others(const struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;
	const char *what = NULL;

	if (c->source != REFRAIN_SOURCE_AUTO)
		what = "source";
	else if (c->record_bytes || c->label_bytes)
		what = c->record_bytes ? "record_bytes" : "label_bytes";
	else if (c->decode || c->augment_fn)
		what = c->decode ? "decode" : "augment_fn";
	else if (c->sample_bytes)
		what = "sample_bytes";
	return what ? error_set(err, -EINVAL,
			      "%s is set, but tokens and arrays in fields "
			      "are read as they are",
			      what)
		    : 0;
}

static int check_samples(struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;
	bool raw = c->source == REFRAIN_SOURCE_RAW;

	s->library_decodes =
		!c->decode && !raw && !settings_tokens(s) && !settings_array(s);
	s->plain = !c->decode && !s->library_decodes;
	s->encoded_max = encoded_max(s);
	if (settings_tokens(s) || settings_array(s))
		return check_no_others(s, err);
	if (raw && !c->record_bytes)
		return error_set(err, -EINVAL,
			"record_bytes is 0: raw records need their size");
	if (!raw && (c->record_bytes || c->label_bytes))
		return error_set(err, -EINVAL,
			"%s is set, but source is not raw: records need it",
			c->record_bytes ? "record_bytes" : "label_bytes");
	if (raw && c->label_bytes >= c->record_bytes)
		return error_set(err, -EINVAL,
			"label_bytes is %u: a record has only %u bytes",
			c->label_bytes, c->record_bytes);
	if (c->decode && !c->decoded_max_bytes)
		return error_set(err, -EINVAL,
			"decoded_max_bytes is 0: decode() needs a size");
	if (c->augment_fn && !c->sample_bytes && !s->plain)
		return error_set(err, -EINVAL,
			"sample_bytes is 0: augment_fn() needs a size");
	if (!c->augment_fn && s->library_decodes && c->sample_bytes)
		return error_set(err, -EINVAL,
			"sample_bytes is set, but the samples are images");
	return 0;
}

static int check_cpus(const struct refrain_config *c, struct error *err)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);

	if (c->cpu_count && !c->cpus)
		return error_set(
			err, -EINVAL, "cpu_count is set, but cpus is not");
	for (uint32_t i = 0; i < c->cpu_count; i++)
		if (c->cpus[i] >= CPU_SETSIZE || (long)c->cpus[i] >= count)
			return error_set(err, -EINVAL,
				"cpus[%u] is %u: there are processors 0 to %ld",
				i, c->cpus[i], count - 1);
	return 0;
}

static int check_no_share(const struct refrain_config *c, struct error *err)
{
	if (c->share_jobs || c->share_batch || c->share_slow)
		return error_set(err, -EINVAL, "%s is set: it needs a share",
			c->share_jobs		 ? "share_jobs"
				: c->share_batch ? "share_batch"
						 : "share_slow");
	return 0;
}

static int check_share(const struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;
	bool slices = c->share_batch && c->share_batch != c->batch;

	if (!c->share)
		return check_no_share(c, err);
	if (c->share_slow && s->changes)
		return error_set(err, -EINVAL,
			"share_slow is solo: with an echo of auto it must be "
			"wait, because a job on its own would change the "
			"factor at other steps");
	if (c->augment == REFRAIN_AUGMENT_EVAL)
		return error_set(err, -EINVAL,
			"share is set: evaluation handles cannot share, as "
			"jobs evaluate at different times");
	if (c->alloc)
		return error_set(err, -EINVAL,
			"alloc is set: a share has its own memory for batches; "
			"see refrain_memory()");
	if (!slices)
		return 0;
	if (c->share_batch % c->batch)
		return error_set(err, -EINVAL,
			"share_batch is %u: it must be a multiple of batch, %u",
			c->share_batch, c->batch);
	if (c->echo_point == REFRAIN_ECHO_BATCH || s->changes)
		return error_set(err, -EINVAL,
			"share_batch is %u: with %s it must equal batch, %u",
			c->share_batch,
			s->changes ? "an echo of auto" : "echo_point batch",
			c->batch);
	if (c->min_lag > 1)
		return error_set(err, -EINVAL,
			"min_lag is %u: it must not be set with share_batch, "
			"because the slices determine it",
			c->min_lag);
	return 0;
}

static int check_lengths(const struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;

	if (!c->bucket)
		return 0;
	if (c->mix)
		return error_set(
			err, -EINVAL, "bucket and mix exclude each other");
	if (c->echo_point != REFRAIN_ECHO_BATCH &&
		(s->changes || s->echo.p != s->echo.q))
		return error_set(err, -EINVAL,
			"bucket is %u: echoes of single examples would mix "
			"lengths, so echo must be 1, or echo_point batch",
			c->bucket);
	if (c->share_batch && c->share_batch != c->batch)
		return error_set(err, -EINVAL,
			"bucket is %u: share_batch must equal batch, %u",
			c->bucket, c->batch);
	return 0;
}

/* Members that need a service, or that it needs. */
static int check_service(const struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;

	if (!c->service && !c->service_dataset && !c->service_local &&
		!c->service_secret)
		return 0;
	if (!c->service)
		return error_set(err, -EINVAL, "%s is set: it needs a service",
			c->service_dataset	   ? "service_dataset"
				: c->service_local ? "service_local"
						   : "service_secret");
	if (!c->service_dataset)
		return error_set(err, -EINVAL,
			"service is set: it needs service_dataset, the name "
			"under which the workers know the dataset");
	if (s->changes)
		return error_set(err, -EINVAL,
			"service is set: the echo factor must be a number, "
			"without echo_log");
	if (c->share)
		return error_set(err, -EINVAL,
			"service is set: it does not work with a share");
	if (strchr(c->dataset, '\n'))
		return error_set(err, -EINVAL,
			"service is set: it needs a single dataset");
	if (c->bucket)
		return error_set(err, -EINVAL,
			"service is set: it does not work with bucket");
	return 0;
}

static int check_mix(struct settings *s, struct error *err)
{
	const char *text = s->c.mix;
	struct mix_text *mix = NULL;
	int rc = text ? mix_text_parse(&mix, text, err) : 0;

	mix_text_free(mix);
	s->mix_hash = text ? hash64(text, strlen(text), 1) : 0;
	return rc;
}

static int check_together(struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;
	int rc;

	if (!c->dataset || !*c->dataset)
		return error_set(err, -EINVAL, "dataset is not set");
	if (c->rank >= c->world)
		return error_set(err, -EINVAL,
			"rank is %u: it must be below world, %u", c->rank,
			c->world);
	if (c->flags & ~member_flags_known())
		return error_set(err, -EINVAL, "flags has unknown bits: 0x%x",
			c->flags & ~member_flags_known());
	if ((c->flags & REFRAIN_FLAG_EQUAL_RANKS) &&
		(c->flags & REFRAIN_FLAG_PAD_RANKS))
		return error_set(err, -EINVAL,
			"flags: EQUAL_RANKS and PAD_RANKS exclude each other");
	if (c->area_min > c->area_max)
		return error_set(
			err, -EINVAL, "area_min is more than area_max");
	if (c->aspect_min > c->aspect_max)
		return error_set(
			err, -EINVAL, "aspect_min is more than aspect_max");
	if (c->augment == REFRAIN_AUGMENT_EVAL && s->echo.p != s->echo.q)
		return error_set(err, -EINVAL,
			"echo is %g: evaluation serves each example once",
			c->echo);
	if (!c->alloc != !c->free)
		return error_set(
			err, -EINVAL, "alloc and free must be set together");
	rc = check_cpus(c, err);
	if (rc == 0)
		rc = check_mix(s, err);
	if (rc == 0)
		rc = check_lengths(s, err);
	if (rc == 0)
		rc = check_share(s, err);
	if (rc == 0)
		rc = check_service(s, err);
	if (rc < 0)
		return rc;
	if (!c->state != !c->state_bytes)
		return error_set(err, -EINVAL,
			"state and state_bytes must be set together");
	return check_samples(s, err);
}

static enum schedule_point point_of(const struct refrain_config *c)
{
	static const enum schedule_point points[] = {
		[REFRAIN_ECHO_BEFORE] = SCHEDULE_BEFORE,
		[REFRAIN_ECHO_AFTER] = SCHEDULE_AFTER,
		[REFRAIN_ECHO_BATCH] = SCHEDULE_BATCH,
	};

	return points[c->echo_point];
}

/* Returns the window for a changing factor. This is the configured window or,
 * if there is none, the longer one of the schedule's default and the shortest
 * window that works. */
static uint64_t changing_window(const struct settings *s)
{
	const struct refrain_config *c = &s->c;
	uint64_t least = least_window(c);
	uint64_t usual = schedule_default_window(
		c->batch, s->echo_max, c->min_lag, point_of(c));

	if (c->window)
		return c->window;
	return usual > least ? usual : least;
}

static void derive_echo(struct settings *s)
{
	const struct refrain_config *c = &s->c;

	s->echo = schedule_echo_nearest(c->echo);
	s->echo_max = s->changes ? schedule_echo_nearest(c->echo_max) : s->echo;
	s->window = s->changes ? changing_window(s) : c->window;
	s->ahead_max = s->ahead_least = c->reads_ahead;
	if (!s->measures)
		return;
	s->ahead_least = BURSTS_AHEAD * c->reads_ahead;
	s->ahead_max += burst_of(c, s->window);
}

/* Returns how images may be scaled while they are decoded. The scale must
 * depend neither on the crops of the echoes nor on how often an example is
 * served. */
static enum augment_scale scale_of(const struct settings *s)
{
	const struct refrain_config *c = &s->c;
	bool echoes = s->changes || s->echo.p != s->echo.q;

	if ((c->augment != REFRAIN_AUGMENT_TRAIN &&
		    c->augment != REFRAIN_AUGMENT_IOU) ||
		(c->flags & REFRAIN_FLAG_EXACT))
		return SCALE_EXACT;
	return echoes && c->echo_point == REFRAIN_ECHO_BEFORE ? SCALE_BY_IMAGE
							      : SCALE_BY_CROP;
}

static void derive_settings(struct settings *s)
{
	const struct refrain_config *c = &s->c;
	const struct token_windows *tokens = settings_tokens(s);
	const struct array_crops *array = settings_array(s);
	struct augment_config *a = &s->augment;

	*a = (struct augment_config){
		.height = c->height,
		.width = c->width,
		.type = c->type,
		.layout = c->layout,
		.augment = c->augment,
		.flip = (c->augment == REFRAIN_AUGMENT_TRAIN ||
				c->augment == REFRAIN_AUGMENT_IOU) &&
			!(c->flags & REFRAIN_FLAG_NO_FLIP),
		.normalise = !(c->flags & REFRAIN_FLAG_NO_NORMALISE),
		.area_min = c->area_min,
		.area_max = c->area_max,
		.aspect_min = c->aspect_min,
		.aspect_max = c->aspect_max,
		.cutout = c->cutout,
		.scale = scale_of(s),
	};
	memcpy(a->mean, c->mean, sizeof(a->mean));
	memcpy(a->std, c->std, sizeof(a->std));
	memcpy(a->jitter, c->jitter, sizeof(a->jitter));
	s->image_sample = !s->plain && !c->augment_fn && !c->sample_bytes;
	s->sample_bytes = c->sample_bytes;
	if (tokens)
		s->sample_bytes = ((size_t)tokens->length + tokens->overlap) *
			settings_value_bytes(s);
	else if (array)
		s->sample_bytes = (size_t)(array->channels + !array->channels) *
			array->crop[0] * array->crop[1] * array->crop[2] *
			array->value_bytes;
	else if (s->image_sample)
		s->sample_bytes = augment_sample_bytes(a);
	else if (!s->sample_bytes)
		s->sample_bytes = c->record_bytes - c->label_bytes;
}

static int copy_known(struct refrain_config *out,
	const struct refrain_config *config, struct error *err)
{
	const unsigned char *bytes = (const unsigned char *)config;

	if (!config || config->size < sizeof(config->size))
		return error_set(err, -EINVAL,
			"size is not set: call refrain_config_init()");
	for (size_t i = sizeof(*out); i < config->size; i++)
		if (bytes[i])
			return error_set(err, -E2BIG,
				"the configuration has members that this "
				"library (version %d) does not know",
				refrain_version());
	refrain_config_init(out);
	memcpy(out, config,
		config->size < sizeof(*out) ? config->size : sizeof(*out));
	out->size = sizeof(*out);
	return 0;
}

int settings_init(struct settings *s, const struct refrain_config *config,
	struct error *err)
{
	int rc;

	memset(s, 0, sizeof(*s));
	rc = copy_known(&s->c, config, err);
	if (rc < 0)
		return rc;
	fill_in(s);
	rc = fill_in_normalise(&s->c, err);
	if (rc == 0)
		rc = take_echo(s, err);
	if (rc == 0)
		rc = members_check(&s->c, err);
	if (rc < 0)
		return rc;
	derive_echo(s);
	rc = settings_parse_fields(s, err);
	if (rc == 0)
		rc = check_together(s, err);
	if (rc == 0)
		rc = check_changes(s, err);
	if (rc < 0)
		return rc;
	derive_settings(s);
	return settings_fields(s, err);
}

static const char *field_name(
	const struct settings *s, int kind, const char *otherwise)
{
	for (unsigned i = 0; i < s->fields.count; i++)
		if (s->fields.field[i].kind == kind)
			return s->fields.field[i].name;
	return otherwise;
}

const char *settings_samples(const struct settings *s)
{
	int kind = s->plain ? REFRAIN_KIND_ARRAY : REFRAIN_KIND_IMAGE;

	return field_name(s, settings_tokens(s) ? REFRAIN_KIND_TOKENS : kind,
		s->image_sample ? "image" : "array");
}

const char *settings_classes(const struct settings *s)
{
	return field_name(s, REFRAIN_KIND_CLASS, "class");
}

static enum schedule_share share_of(const struct refrain_config *c)
{
	if (c->flags & REFRAIN_FLAG_EQUAL_RANKS)
		return SCHEDULE_EQUAL;
	return c->flags & REFRAIN_FLAG_PAD_RANKS ? SCHEDULE_PAD
						 : SCHEDULE_UNEVEN;
}

void settings_schedule(const struct settings *s, uint64_t examples,
	const struct part_mix *mix, struct schedule_config *out)
{
	const struct refrain_config *c = &s->c;

	*out = (struct schedule_config){
		.examples = examples,
		.epochs = c->epochs,
		.epoch_examples = examples ? c->epoch_examples : 0,
		.subset = c->subset,
		.subset_seed = c->subset_seed,
		.mix = mix,
		.seed = c->seed,
		.batch = c->batch,
		.rank = c->rank,
		.world = c->world,
		.lag = c->min_lag,
		.window = s->window,
		.echo = s->echo,
		.echo_max = s->echo_max,
		.point = point_of(c),
		.order = SCHEDULE_SHUFFLE,
		.share = share_of(c),
		.nearby = c->shuffle_window,
		.drop_last = c->last == REFRAIN_LAST_DROP,
		.allow_small_window =
			(c->flags & REFRAIN_FLAG_ALLOW_DUPLICATES) != 0,
	};
	if (c->flags & REFRAIN_FLAG_IN_ORDER)
		out->order = SCHEDULE_IN_ORDER;
	else if (c->shuffle_window)
		out->order = SCHEDULE_NEARBY;
}

void settings_open_schedule(const struct settings *s, uint64_t seed,
	struct schedule_echo echo, struct schedule_config *out)
{
	settings_schedule(s, 0, NULL, out);
	out->open_end = true;
	out->seed = seed;
	out->echo = echo;
}

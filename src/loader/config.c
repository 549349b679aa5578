/* SPDX-License-Identifier: MIT */
/*
 * Checks and defaults of the configuration. One table says what each member may
 * be; what concerns several at once follows it. Pure functions, but for asking
 * the system how much memory there is.
 */
#include "loader/config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ECHO_Q_MAX 64
#define SIDE_MAX 16384
#define KNOWN_FLAGS                                                            \
	(REFRAIN_FLAG_IN_ORDER | REFRAIN_FLAG_NO_FLIP |                        \
		REFRAIN_FLAG_NO_ORIENT | REFRAIN_FLAG_PAD_RANKS |              \
		REFRAIN_FLAG_ALLOW_DUPLICATES | REFRAIN_FLAG_NO_NORMALISE |    \
		REFRAIN_FLAG_NO_MOUNT_HELP)

enum kind { U32, I32, F32, F64 };

/* A member that is a number, its default for 0, and its limits after that. */
struct rule {
	const char *name;
	size_t offset;
	enum kind kind;
	double fallback, min, max;
};

#define RULE(member, kind, fallback, min, max)                                 \
	{                                                                      \
#member, offsetof(struct refrain_config, member), kind,        \
			fallback, min, max                                     \
	}

static const struct rule rules[] = {
	RULE(source, I32, 0, 0, REFRAIN_SOURCE_RAW),
	RULE(record_bytes, U32, 0, 0, UINT32_MAX),
	RULE(label_bytes, U32, 0, 0, 8),
	RULE(batch, U32, 0, 1, SCHEDULE_BATCH_MAX),
	RULE(epochs, U32, 1, 1, UINT32_MAX),
	RULE(echo, F64, 1, 1, SCHEDULE_ECHO_MAX),
	RULE(echo_point, I32, 0, 0, REFRAIN_ECHO_BATCH),
	RULE(window, U32, 0, 0, UINT32_MAX),
	RULE(min_lag, U32, 1, 1, SCHEDULE_LAG_MAX),
	RULE(shuffle_window, U32, 0, 0, UINT32_MAX),
	RULE(world, U32, 1, 1, UINT32_MAX),
	RULE(rank, U32, 0, 0, UINT32_MAX),
	RULE(last, I32, 0, 0, REFRAIN_LAST_DROP),
	RULE(flags, U32, 0, 0, UINT32_MAX),
	RULE(height, U32, 224, 1, SIDE_MAX),
	RULE(width, U32, 224, 1, SIDE_MAX),
	RULE(type, I32, 0, 0, REFRAIN_F32),
	RULE(layout, I32, 0, 0, REFRAIN_NCHW),
	RULE(augment, I32, 0, 0, REFRAIN_AUGMENT_NONE),
	RULE(mean[0], F32, 0, -1000, 1000),
	RULE(mean[1], F32, 0, -1000, 1000),
	RULE(mean[2], F32, 0, -1000, 1000),
	RULE(std[0], F32, 1, 1e-6, 1000),
	RULE(std[1], F32, 1, 1e-6, 1000),
	RULE(std[2], F32, 1, 1e-6, 1000),
	RULE(area_min, F32, 0.08, 1e-4, 1),
	RULE(area_max, F32, 1, 1e-4, 1),
	RULE(aspect_min, F32, 3. / 4, 0.01, 100),
	RULE(aspect_max, F32, 4. / 3, 0.01, 100),
	RULE(jitter[0], F32, 0, 0, 1000),
	RULE(jitter[1], F32, 0, 0, 1000),
	RULE(jitter[2], F32, 0, 0, 1000),
	RULE(cutout, U32, 0, 0, SIDE_MAX),
	RULE(policy, I32, 0, 0, REFRAIN_FAIL),
	RULE(threads, U32, 0, 1, 1024),
	RULE(batches_ahead, U32, 4, 1, 4096),
	RULE(reads_ahead, U32, 64, 1, 4096),
	RULE(cpu_count, U32, 0, 0, 4096),
	RULE(nice, I32, 0, 0, 19),
	RULE(echo_max, F64, 4, 1, SCHEDULE_ECHO_MAX),
	RULE(open_timeout_ms, I32, 30000, -1, INT32_MAX),
	RULE(reserved, U32, 0, 0, 0),
};

static double member_get(const struct refrain_config *c, const struct rule *r)
{
	const char *at = (const char *)c + r->offset;

	switch (r->kind) {
	case U32:
		return *(const uint32_t *)(const void *)at;
	case I32:
		return *(const int32_t *)(const void *)at;
	case F32:
		return (double)*(const float *)(const void *)at;
	case F64:
		break;
	}
	return *(const double *)(const void *)at;
}

/* The fallback of a member that was 0. */
static void member_set(struct refrain_config *c, const struct rule *r)
{
	void *at = (char *)c + r->offset;

	switch (r->kind) {
	case U32:
		*(uint32_t *)at = (uint32_t)r->fallback;
		break;
	case I32:
		*(int32_t *)at = (int32_t)r->fallback;
		break;
	case F32:
		*(float *)at = (float)r->fallback;
		break;
	case F64:
		*(double *)at = r->fallback;
		break;
	}
}

static int apply_rules(struct refrain_config *c, struct error *err)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		const struct rule *r = &rules[i];
		double value = member_get(c, r);

		/* A NaN is equal to nothing. */
		if (value == 0. && r->fallback != 0.) {
			member_set(c, r);
			value = member_get(c, r);
		}
		if (!(value >= (double)(float)r->min * (1 - 1e-9) - 1e-12 &&
			    value <= r->max * (1 + 1e-6)))
			return error_set(err, -EINVAL,
				"%s is %g: it must be from %g to %g", r->name,
				value, r->min, r->max);
	}
	return 0;
}

/* -- Defaults that depend on the system or on each other ------------------- */

static unsigned processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	return 1;
}

/* The limit of our control group, or `most`. */
static uint64_t group_limit(uint64_t most)
{
	uint64_t limit = most;
	FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");

	if (!f)
		return most;
	if (fscanf(f, "%" SCNu64, &limit) != 1 || limit > most)
		limit = most;
	(void)fclose(f); /* was only read */
	return limit;
}

static uint64_t memory_of_process(void)
{
	static const int which[] = {RLIMIT_AS, RLIMIT_DATA};
	uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		(uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit rl;

	for (unsigned i = 0; i < 2; i++)
		if (getrlimit(which[i], &rl) == 0 && rl.rlim_cur < most)
			most = rl.rlim_cur;
	return group_limit(most);
}

static void fill_in(struct refrain_config *c)
{
	static const float mean[3] = {0.485F, 0.456F, 0.406F};
	static const float std[3] = {0.229F, 0.224F, 0.225F};
	bool given = false;

	for (unsigned i = 0; i < 3; i++)
		given = given || c->mean[i] != 0.F || c->std[i] != 0.F;
	if (!given) {
		memcpy(c->mean, mean, sizeof(mean));
		memcpy(c->std, std, sizeof(std));
	}
	if (!c->height)
		c->height = c->width;
	if (!c->width)
		c->width = c->height;
	if (!c->threads)
		c->threads = processors();
	if (!c->memory_bytes)
		c->memory_bytes = memory_of_process() / 4;
	if (!c->max_pixels)
		c->max_pixels = 200000000;
}

/* The nearest p / q. */
static struct schedule_echo nearest(double echo)
{
	struct schedule_echo best = {1, 1};
	double best_off = INFINITY;

	for (uint32_t q = 1; q <= ECHO_Q_MAX; q++) {
		uint32_t p = (uint32_t)lround(echo * q);
		double off = fabs((double)p / q - echo);

		if (off < best_off - 1e-12) {
			best = (struct schedule_echo){p, q};
			best_off = off;
		}
	}
	return best;
}

/* -- The echo factor that changes ------------------------------------------ */

/* Bursts are of twice what is read at a time at least, so that half of one is
 * read with something to follow; what is left between bursts is enough for the
 * other. More are a better measure, but there must be some in each window. */
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
			"%s is set: it needs an echo of REFRAIN_ECHO_AUTO",
			c->echo_log ? "echo_log" : "echo_max");
	return 0;
}

/*
 * What is planned has its number of servings: a window must be longer, or a
 * change would begin after the next one is due.
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
			"echo is auto with world %u: ranks must change it at "
			"the same steps; give all the same echo_log, or a "
			"number, such as the r of a run with world 1",
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

/* -- Members that concern each other --------------------------------------- */

static int check_samples(struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;
	bool raw = c->source == REFRAIN_SOURCE_RAW;

	s->jpeg = !c->decode && !raw;
	s->plain = !c->decode && raw;
	if (raw && !c->record_bytes)
		return error_set(err, -EINVAL,
			"record_bytes is 0: raw records need their size");
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
	if (!c->augment_fn && s->jpeg && c->sample_bytes)
		return error_set(err, -EINVAL,
			"sample_bytes is set, but the samples are images");
	return 0;
}

static int check_together(struct settings *s, struct error *err)
{
	const struct refrain_config *c = &s->c;

	if (!c->dataset || !*c->dataset)
		return error_set(err, -EINVAL, "dataset is not set");
	if (c->rank >= c->world)
		return error_set(err, -EINVAL,
			"rank is %u: it must be below world, %u", c->rank,
			c->world);
	if (c->flags & ~(uint32_t)KNOWN_FLAGS)
		return error_set(err, -EINVAL, "flags has unknown bits: 0x%x",
			c->flags & ~(uint32_t)KNOWN_FLAGS);
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
		return error_set(err, -EINVAL,
			"alloc and free must be set both or not at all");
	if (c->cpu_count && !c->cpus)
		return error_set(
			err, -EINVAL, "cpu_count is set, but cpus is not");
	if (!c->state != !c->state_bytes)
		return error_set(err, -EINVAL,
			"state and state_bytes must be set both or not at all");
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

/* Measured or replayed: the usual one, or the least. */
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

	s->echo = nearest(c->echo);
	s->echo_max = s->changes ? nearest(c->echo_max) : s->echo;
	s->window = s->changes ? changing_window(s) : c->window;
	s->ahead_max = s->ahead_least = c->reads_ahead;
	if (!s->measures)
		return;
	s->ahead_least = BURSTS_AHEAD * c->reads_ahead;
	s->ahead_max += burst_of(c, s->window);
}

static void derive(struct settings *s)
{
	const struct refrain_config *c = &s->c;
	struct augment_config *a = &s->augment;

	*a = (struct augment_config){
		.height = c->height,
		.width = c->width,
		.type = c->type,
		.layout = c->layout,
		.augment = c->augment,
		.flip = c->augment == REFRAIN_AUGMENT_TRAIN &&
			!(c->flags & REFRAIN_FLAG_NO_FLIP),
		.normalise = !(c->flags & REFRAIN_FLAG_NO_NORMALISE),
		.area_min = c->area_min,
		.area_max = c->area_max,
		.aspect_min = c->aspect_min,
		.aspect_max = c->aspect_max,
		.cutout = c->cutout,
	};
	memcpy(a->mean, c->mean, sizeof(a->mean));
	memcpy(a->std, c->std, sizeof(a->std));
	memcpy(a->jitter, c->jitter, sizeof(a->jitter));
	s->image_sample = !s->plain && !c->augment_fn && !c->sample_bytes;
	s->sample_bytes = c->sample_bytes;
	if (s->image_sample)
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
	fill_in(&s->c);
	rc = take_echo(s, err);
	if (rc == 0)
		rc = apply_rules(&s->c, err);
	if (rc < 0)
		return rc;
	derive_echo(s);
	rc = check_together(s, err);
	if (rc == 0)
		rc = check_changes(s, err);
	if (rc == 0)
		derive(s);
	return rc;
}

void settings_schedule(const struct settings *s, uint64_t examples,
	struct schedule_config *out)
{
	const struct refrain_config *c = &s->c;

	*out = (struct schedule_config){
		.examples = examples,
		.epochs = c->epochs,
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
		.share = c->flags & REFRAIN_FLAG_PAD_RANKS ? SCHEDULE_PAD
							   : SCHEDULE_UNEVEN,
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

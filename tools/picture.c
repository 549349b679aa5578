/* SPDX-License-Identifier: MIT */
/* Draws synthetic photographs: a smooth field of colour, a grating, some shapes
 * and noise. Pure functions without shared state; any thread. */
#include "picture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"

#define GRID 6 /* number of nodes of the smooth field along each side */
#define CHANNELS 3

/* -- Random numbers: a mixed counter. The stripes of an LCG would be seen. --
 */

struct rng {
	uint64_t state;
};

static uint64_t rng_next(struct rng *r)
{
	r->state++;
	return hash64(&r->state, sizeof(r->state), 0);
}

/* Returns a random stream of its own for each (seed, what, number). */
static struct rng rng_of(uint64_t seed, uint64_t what, uint64_t number)
{
	uint64_t text[2] = {what, number};

	return (struct rng){hash64(text, sizeof(text), seed)};
}

/* Returns a uniform random number of lo..hi, both included. */
static int rng_range(struct rng *r, int lo, int hi)
{
	return lo + (int)(rng_next(r) % (uint64_t)(hi - lo + 1));
}

enum stream {
	OF_CLASS = 1,
	OF_PICTURE,
	OF_NOISE,
	OF_SIZE,
};

/* -- The properties of a class, and of one picture of it -- */

enum shape_kind {
	SHAPE_DISC,
	SHAPE_RING,
	SHAPE_BOX,
	SHAPE_FRAME,
	SHAPE_DIAMOND,
	SHAPE_CROSS,
	SHAPE_KINDS,
};

struct picture_look {
	/* values of the nodes; the mean of each channel is 0 */
	int field[CHANNELS][GRID][GRID];
	/* number of waves of the grating across the frame */
	int waves_x, waves_y;
	int tint[CHANNELS]; /* colour of the grating, in percent */
	enum shape_kind shape;
	int nshapes;
};

static void look_field(struct rng *r, int field[GRID][GRID])
{
	int sum = 0;

	for (int y = 0; y < GRID; y++)
		for (int x = 0; x < GRID; x++)
			sum += field[y][x] = rng_range(r, -44, 44);
	/* Subtract the mean, because the mean colour must not depend on the
	 * class. */
	for (int y = 0; y < GRID; y++)
		for (int x = 0; x < GRID; x++)
			field[y][x] -= sum / (GRID * GRID);
}

static struct picture_look picture_look_of(uint64_t seed, unsigned class)
{
	struct rng r = rng_of(seed, OF_CLASS, class);
	struct picture_look look = {.nshapes = rng_range(&r, 1, 5)};

	for (int c = 0; c < CHANNELS; c++) {
		look_field(&r, look.field[c]);
		look.tint[c] = rng_range(&r, -24, 24);
	}
	look.waves_x = rng_range(&r, -20, 20);
	look.waves_y = rng_range(&r, 4, 20);
	look.shape = (enum shape_kind)rng_range(&r, 0, SHAPE_KINDS - 1);
	return look;
}

struct canvas {
	uint8_t *rgb;
	int width, height;
};

static uint8_t clamp(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* -- Field, grating, noise: drawn in one pass over the frame -- */

/* The position of a pixel between two nodes of the field. */
struct between {
	int node;
	int weight; /* weight of the next node, out of 256 */
};

/* Smooth the weight between nodes; with linear weights, edges would show at the
 * nodes. */
static struct between between(int at, int length, int shift)
{
	int64_t span = (int64_t)(GRID - 1) << 16;
	int64_t pos = at * span / length + shift;
	struct between b;
	int64_t t;

	pos = pos < 0 ? 0 : pos >= span ? span - 1 : pos;
	b.node = (int)(pos >> 16);
	t = (pos & 0xffff) >> 8;
	b.weight = (int)((t * t * (768 - 2 * t)) >> 16);
	return b;
}

static int picture_mix(int a, int b, int weight)
{
	return a + (b - a) * weight / 256;
}

/* Returns a wave with amplitude 128 and period 2^32. It consists of parabolas,
 * which are close to a sine. */
static int wave(uint32_t phase)
{
	int p = (int16_t)(phase >> 16);

	return p * (32768 - abs(p)) / (1 << 21);
}

struct ground {
	struct picture_look look;
	int base[CHANNELS]; /* mean colour of this picture */
	int strength;	    /* strength of the field, in percent */
	int shift_y;	    /* shift of the field, in 1/65536 of a node */
	struct between *columns;
	/* phase of the grating, and its growth per pixel; 2^32 is a full turn
	 */
	uint32_t phase, step_x, step_y;
	int noise;	/* amplitude, 0..255 */
	struct rng rng; /* random numbers for the noise */
};

static uint32_t turns(struct rng *r, int waves, int length)
{
	/* The pitch is that of the class, up to a tenth more or less. */
	int64_t percent = rng_range(r, 90, 110);

	return (uint32_t)(waves * percent * (INT64_C(1) << 32) /
		(INT64_C(100) * length));
}

static int ground_init(struct ground *g, const struct picture_spec *spec,
	const struct canvas *cv, struct rng *r)
{
	int shift_x = rng_range(r, -26000, 26000);

	g->look = picture_look_of(spec->seed, spec->class);
	for (int c = 0; c < CHANNELS; c++)
		g->base[c] = rng_range(r, 80, 176);
	g->strength = rng_range(r, 60, 130);
	g->shift_y = rng_range(r, -26000, 26000);
	g->phase = (uint32_t)rng_next(r);
	g->step_x = turns(r, g->look.waves_x, cv->width);
	g->step_y = turns(r, g->look.waves_y, cv->height);
	g->noise = rng_range(r, 6, 50);
	g->rng = rng_of(spec->seed, OF_NOISE, spec->index);
	g->columns = malloc((size_t)cv->width * sizeof(*g->columns));
	if (!g->columns)
		return -ENOMEM;
	for (int x = 0; x < cv->width; x++)
		g->columns[x] = between(x, cv->width, shift_x);
	return 0;
}

/* Interpolate the nodes of the field at the height of one row. */
static void ground_row_nodes(
	const struct ground *g, struct between row, int nodes[CHANNELS][GRID])
{
	for (int c = 0; c < CHANNELS; c++)
		for (int x = 0; x < GRID; x++)
			nodes[c][x] = picture_mix(g->look.field[c][row.node][x],
					      g->look.field[c][row.node + 1][x],
					      row.weight) *
				g->strength / 100;
}

static void ground_row(struct ground *g, struct canvas *cv, int y)
{
	uint8_t *px = cv->rgb + (size_t)y * (size_t)cv->width * CHANNELS;
	uint32_t phase = g->phase + (uint32_t)y * g->step_y;
	int nodes[CHANNELS][GRID];
	uint64_t bits = 0;

	ground_row_nodes(g, between(y, cv->height, g->shift_y), nodes);
	for (int x = 0; x < cv->width; x++, phase += g->step_x) {
		struct between at = g->columns[x];
		int w = wave(phase), noise;

		if (x % 8 == 0)
			bits = rng_next(&g->rng);
		noise = ((int)(bits & 0xff) - 128) * g->noise / 128;
		bits >>= 8;
		for (int c = 0; c < CHANNELS; c++)
			*px++ = clamp(g->base[c] + noise +
				w * g->look.tint[c] / 128 +
				picture_mix(nodes[c][at.node],
					nodes[c][at.node + 1], at.weight));
	}
}

/* -- Shapes -- */

static bool picture_inside(enum shape_kind kind, int dx, int dy, int r)
{
	int ax = abs(dx), ay = abs(dy);
	int high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
	int64_t square = (int64_t)dx * dx + (int64_t)dy * dy;
	int64_t rr = (int64_t)r * r;

	switch (kind) {
	case SHAPE_DISC:
		return square < rr;
	case SHAPE_RING:
		return square < rr && square > rr * 2 / 5;
	case SHAPE_BOX:
		return high < r;
	case SHAPE_FRAME:
		return high < r && high > r * 5 / 8;
	case SHAPE_DIAMOND:
		return ax + ay < r;
	case SHAPE_CROSS:
		return high < r && low < r / 4;
	case SHAPE_KINDS:
		break;
	}
	return false;
}

struct shape {
	enum shape_kind kind;
	int r, x, y; /* half of the side; position of the centre */
	int colour[CHANNELS];
};

/* Choose a shape at random. Half of its side is `least` to `most` thousandths
 * of the frame's shorter side. */
static struct shape shape_make(const struct canvas *cv, enum shape_kind kind,
	int least, int most, struct rng *rng)
{
	struct shape s = {.kind = kind};
	int side = cv->width < cv->height ? cv->width : cv->height;

	s.r = side * rng_range(rng, least, most) / 1000;
	s.x = rng_range(rng, 0, cv->width - 1);
	s.y = rng_range(rng, 0, cv->height - 1);
	for (int c = 0; c < CHANNELS; c++)
		s.colour[c] = rng_range(rng, 20, 235);
	return s;
}

/* Paint a shape. If ids is not NULL, also set the ids of its pixels to `id`. */
static void shape_paint(
	struct canvas *cv, const struct shape *s, uint8_t *ids, uint8_t id)
{
	int x0 = s->x - s->r < 0 ? 0 : s->x - s->r;
	int y0 = s->y - s->r < 0 ? 0 : s->y - s->r;

	for (int y = y0; y < cv->height && y < s->y + s->r; y++)
		for (int x = x0; x < cv->width && x < s->x + s->r; x++) {
			size_t at = (size_t)y * (size_t)cv->width + (size_t)x;
			uint8_t *px = cv->rgb + at * CHANNELS;

			if (!picture_inside(s->kind, x - s->x, y - s->y, s->r))
				continue;
			/* Mix the shape's colour with the ground, so that some
			 * of the ground and its noise shows. */
			for (int c = 0; c < CHANNELS; c++)
				px[c] = (uint8_t)picture_mix(
					px[c], s->colour[c], 190);
			if (ids)
				ids[at] = id;
		}
}

static int draw_ground(const struct picture_spec *spec, struct canvas *cv,
	struct rng *r, struct ground *g)
{
	int rc = ground_init(g, spec, cv, r);

	if (rc < 0)
		return rc;
	for (int y = 0; y < cv->height; y++)
		ground_row(g, cv, y);
	free(g->columns);
	return 0;
}

int picture_draw(const struct picture_spec *spec, uint8_t *rgb)
{
	struct canvas cv = {rgb, (int)spec->width, (int)spec->height};
	struct rng r = rng_of(spec->seed, OF_PICTURE, spec->index);
	struct ground g;
	int rc = draw_ground(spec, &cv, &r, &g);

	for (int i = 0; rc == 0 && i < g.look.nshapes; i++) {
		struct shape s = shape_make(&cv, g.look.shape, 60, 140, &r);

		shape_paint(&cv, &s, NULL, 0);
	}
	return rc;
}

/* -- Objects -- */

const char *picture_kind(unsigned kind)
{
	static const char *const names[PICTURE_KINDS] = {
		"disc", "ring", "box", "frame", "diamond", "cross"};

	_Static_assert(PICTURE_KINDS == SHAPE_KINDS, "each has a name");
	return names[kind];
}

/* Find the boxes of the visible shapes. The ids are numbers of shapes, from 1
 * on; each is replaced by 1 + kind. Shapes without a visible pixel are left
 * out. Returns the number of boxes. */
static unsigned find_objects(const struct canvas *cv, uint8_t *ids,
	const struct shape *shapes, unsigned count,
	struct picture_object *objects)
{
	struct picture_object all[PICTURE_OBJECTS_MAX] = {{.kind = 0}};
	unsigned seen = 0;

	for (int y = 0; y < cv->height; y++)
		for (int x = 0; x < cv->width; x++) {
			uint8_t *id = ids + (size_t)y * (size_t)cv->width + x;
			struct picture_object *o = &all[*id - 1];

			if (!*id)
				continue;
			if (!o->pixels++)
				*o = (struct picture_object){
					.x = (uint16_t)x,
					.y = (uint16_t)y,
					.pixels = 1,
				};
			if (x < o->x) {
				o->width = (uint16_t)(o->width + o->x - x);
				o->x = (uint16_t)x;
			}
			if (x - o->x >= o->width)
				o->width = (uint16_t)(x - o->x + 1);
			o->height = (uint16_t)(y - o->y + 1);
			*id = (uint8_t)(1 + shapes[*id - 1].kind);
		}
	for (unsigned i = 0; i < count; i++)
		if (all[i].pixels) {
			objects[seen] = all[i];
			objects[seen++].kind = (uint16_t)shapes[i].kind;
		}
	return seen;
}

int picture_draw_objects(const struct picture_spec *spec, unsigned kinds,
	uint8_t *rgb, uint8_t *ids,
	struct picture_object objects[PICTURE_OBJECTS_MAX])
{
	struct canvas cv = {rgb, (int)spec->width, (int)spec->height};
	struct rng r = rng_of(spec->seed, OF_PICTURE, spec->index);
	struct shape shapes[PICTURE_OBJECTS_MAX];
	struct ground g;
	unsigned count;
	int rc = draw_ground(spec, &cv, &r, &g);

	if (rc < 0)
		return rc;
	memset(ids, 0, (size_t)spec->width * spec->height);
	count = (unsigned)rng_range(&r, 1, PICTURE_OBJECTS_MAX);
	for (unsigned i = 0; i < count; i++) {
		int kind = rng_range(&r, 0, (int)kinds - 1);

		shapes[i] = shape_make(&cv, (enum shape_kind)kind, 80, 250, &r);
		shape_paint(&cv, &shapes[i], ids, (uint8_t)(i + 1));
	}
	return (int)find_objects(&cv, ids, shapes, count, objects);
}

struct picture_spec picture_spec(uint64_t seed, uint64_t index, unsigned class)
{
	static const struct {
		int width, height;
	} aspects[] = {{4, 3}, {4, 3}, {4, 3}, {4, 3}, {4, 3}, {4, 3}, {3, 4},
		{3, 4}, {3, 2}, {1, 1}};
	struct rng r = rng_of(seed, OF_SIZE, index);
	/* Choose a size. Products of uniform numbers are mostly small, like the
	 * sizes of objects in photographs. */
	int side = 468 * rng_range(&r, 62, 140) / 100 * rng_range(&r, 62, 140) /
		100;
	size_t a = (size_t)rng_range(&r, 0, 9);
	int sum = aspects[a].width + aspects[a].height;

	return (struct picture_spec){
		.seed = seed,
		.index = index,
		.class = class,
		.width = (unsigned)(side * 2 * aspects[a].width / sum),
		.height = (unsigned)(side * 2 * aspects[a].height / sum),
		.quality = (unsigned)rng_range(&r, 82, 96),
	};
}

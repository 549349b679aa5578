/* SPDX-License-Identifier: MIT */
/* loader-run: takes batches from refrain's loader by its public interface, as
 * fast as they come, like a trainer without work. Prints one line of JSON with
 * the processor time per image, summed over all threads of the process, in the
 * program and in the kernel. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/hash.h"
#include "loader_options.h"

#define WAIT_MS 60000

struct run {
	const struct loader_options *o;
	struct refrain_loader *l;
	struct loader_usage usage;
	struct refrain_stats begin, end;
	uint64_t steps, images, fresh, hash;
};

static void stats_of(struct run *r, struct refrain_stats *out)
{
	*out = (struct refrain_stats){.size = sizeof(*out)};
	/* fails only in a child after fork() */
	(void)refrain_stats_get(r->l, out);
}

static void take(struct run *r, const struct refrain_batch *b)
{
	if (r->steps++ >= r->o->skip) {
		r->images += b->count;
		r->fresh += b->fresh;
	}
	if (r->o->hash)
		r->hash = hash64(b->data, b->data_bytes, r->hash);
	for (uint32_t i = 2; r->o->hash && i < b->column_count; i++)
		r->hash = hash64(refrain_column_at(b, i)->data,
			refrain_column_at(b, i)->data_bytes, r->hash);
	refrain_release(b);
	if (r->steps == r->o->skip) {
		stats_of(r, &r->begin);
		loader_usage_now(&r->usage);
	}
}

static int run(struct run *r)
{
	const struct refrain_batch *b;
	int rc = 1;

	while ((!r->o->steps || r->steps < r->o->steps) && rc > 0) {
		rc = refrain_next(r->l, &b, WAIT_MS);
		if (rc > 0)
			take(r, b);
	}
	loader_usage_since(&r->usage);
	stats_of(r, &r->end);
	return rc < 0 ? rc : 0;
}

static double per_image_ms(const struct run *r, uint64_t ns)
{
	return r->images ? (double)ns / 1e6 / (double)r->images : 0;
}

static double stage_ms(const struct run *r, enum refrain_stage_name stage)
{
	const struct refrain_stage *a = &r->begin.stages[stage];
	const struct refrain_stage *b = &r->end.stages[stage];

	return b->items > a->items ? (double)(b->cpu_ns - a->cpu_ns) / 1e6 /
			(double)(b->items - a->items)
				   : 0;
}

static void print(const struct run *r)
{
	printf("{\"what\": \"refrain\", \"echo\": %g, \"images\": %" PRIu64
	       ", \"fresh\": %" PRIu64 ", \"decodes\": %" PRIu64
	       ", \"errors\": %" PRIu64,
		r->o->config.echo, r->images, r->fresh,
		r->end.decodes - r->begin.decodes, r->end.errors);
	printf(", \"cpu_ms\": %.5f, \"wall_ms\": %.5f",
		per_image_ms(r, r->usage.cpu_ns),
		per_image_ms(r, r->usage.wall_ns));
	printf(", \"decode_ms\": %.5f, \"augment_ms\": %.5f",
		stage_ms(r, REFRAIN_STAGE_DECODE),
		stage_ms(r, REFRAIN_STAGE_AUGMENT));
	printf(", \"faults\": %" PRIu64 ", \"peak_bytes\": %" PRIu64,
		r->usage.faults, loader_peak_bytes());
	if (r->o->hash)
		printf(", \"hash\": \"%016" PRIx64 "\"", r->hash);
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct loader_options o;
	struct run r = {.o = &o};
	bool done;
	int rc = loader_options_parse(
		&o, "loader-run", "Time refrain's loader.", argc, argv, &done);

	if (done)
		return rc;
	loader_usage_now(&r.usage);
	r.begin.size = sizeof(r.begin);
	rc = refrain_open(&r.l, &o.config);
	if (rc < 0) {
		fprintf(stderr, "loader-run: %s\n", refrain_message(NULL));
		return 1;
	}
	rc = run(&r);
	if (rc < 0)
		fprintf(stderr, "loader-run: %s\n", refrain_message(r.l));
	(void)refrain_close(r.l); /* cannot fail: no read hangs */
	if (rc == 0)
		print(&r);
	return rc < 0;
}

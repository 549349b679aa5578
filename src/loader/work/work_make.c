/* SPDX-License-Identifier: MIT */
/* Makes the samples of a range and puts them into the store. Used by one hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/lock.h"
#include "loader/engine/sample.h"
#include "loader/service/service_value.h"
#include "loader/work/work_impl.h"

/* Pause of all hands after the store has refused a sample. */
#define FULL_PAUSE_NS NS_PER_S

struct maker_bytes {
	uint8_t *data;
	size_t room;
};

/* A sample that this hand has put into the store. */
struct maker_put {
	char key[SERVICE_KEY_MAX];
	uint64_t cas;
};

struct maker {
	struct work_hand *hand;
	const struct work_job *job; /* the job for which `sampler` was made */
	struct sampler *sampler;
	struct maker_bytes encoded, decoded, samples;
	struct maker_put mine[RANGE_SAMPLES_MAX];
	unsigned nmine;
};

int maker_new(struct maker **out, struct work_hand *h)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->hand = h;
	return 0;
}

void maker_free(struct maker *m)
{
	if (!m)
		return;
	sampler_free(m->sampler);
	free(m->encoded.data);
	free(m->decoded.data);
	free(m->samples.data);
	free(m);
}

static int bytes_need(struct maker_bytes *b, size_t bytes)
{
	uint8_t *more;

	if (bytes <= b->room)
		return 0;
	more = realloc(b->data, bytes);
	if (!more)
		return -ENOMEM;
	b->data = more;
	b->room = bytes;
	return 0;
}

/* -- Reading --------------------------------------------------------------- */

static int read_bytes(int fd, uint8_t *data, size_t bytes, uint64_t offset)
{
	while (bytes > 0) {
		ssize_t n = pread(fd, data, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		data += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int read_example(
	struct maker *m, const struct example *e, struct encoded *out)
{
	uint64_t bytes = e->bytes;
	CLEANUP_FD int fd = -1;
	struct stat st;
	int rc;

	/* Opening something other than a regular file must not block the hand.
	 */
	fd = openat(
		e->dir, e->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (e->whole)
		bytes = (uint64_t)st.st_size;
	if (bytes > m->job->s.encoded_max || bytes > m->job->s.c.memory_bytes)
		return -E2BIG;
	rc = bytes_need(&m->encoded, bytes + 1);
	if (rc == 0)
		rc = read_bytes(fd, m->encoded.data, bytes, e->offset);
	*out = (struct encoded){
		.data = m->encoded.data, .bytes = bytes, .name = e->name};
	return rc;
}

/* -- Making ---------------------------------------------------------------- */

struct making {
	const struct work_job *job;
	struct schedule seeds; /* only its seed and echo point are used */
	struct schedule_slot slot;
};

static uint64_t making_seed(const void *ctx, uint32_t k)
{
	const struct making *g = ctx;

	return schedule_augment_seed(&g->seeds, &g->slot, k);
}

/* Decode an example for all of its servings. */
static int decode_example(struct maker *m, const struct encoded *in,
	const struct seeds *all, struct picture *pic, struct decoded *out)
{
	struct sample_layout layout;
	struct error err;
	int rc = sample_probe(m->sampler, pic, in, &err);

	if (rc < 0)
		return rc;
	sample_find_region(m->sampler, pic, all);
	sample_layout(m->sampler, pic, all->end, all, &layout);
	rc = bytes_need(&m->decoded, layout.bytes);
	if (rc == 0)
		rc = sample_decode(m->sampler, pic, in, &layout,
			m->decoded.data, out, &err);
	work_count(&m->hand->work->decodes, rc == 0);
	return rc;
}

static uint8_t *stored_at(const struct maker *m, uint32_t k)
{
	return m->samples.data +
		k * (SAMPLE_HEAD_BYTES + m->job->s.sample_bytes);
}

/* Make all samples of an example, with their heads. */
static int make_samples(
	struct maker *m, const struct sample_name *name, const struct making *g)
{
	const struct seeds all = {0, name->servings, making_seed, g};
	struct picture pic = {.probed = false};
	struct encoded in = {.index = name->index};
	struct sample_value v = {.maker = m->hand->work->maker,
		.bytes = (uint32_t)m->job->s.sample_bytes};
	struct decoded d;
	struct example e;
	int rc;

	dataset_example(m->job->dataset, name->index, &e);
	rc = read_example(m, &e, &in);
	if (rc == 0)
		rc = decode_example(m, &in, &all, &pic, &d);
	if (rc == 0)
		rc = bytes_need(&m->samples,
			name->servings *
				(SAMPLE_HEAD_BYTES + m->job->s.sample_bytes));
	for (uint32_t k = 0; rc == 0 && k < name->servings; k++) {
		char key[SERVICE_KEY_MAX];
		uint8_t *at = stored_at(m, k);

		rc = sample_augment(m->sampler, &pic, &d, making_seed(g, k),
			at + SAMPLE_HEAD_BYTES);
		v.width = pic.info.width;
		v.height = pic.info.height;
		(void)service_sample_key(key, m->job->id, name, k);
		sample_seal(at, m->hand->work->seed, key, &v,
			at + SAMPLE_HEAD_BYTES);
	}
	return rc;
}

/* -- The store ------------------------------------------------------------- */

static void store_is_full(struct work *w)
{
	LOCK_SCOPE(&w->lock);

	w->full_until_ns = clock_now_ns() + FULL_PAUSE_NS;
}

/* Put the samples of an example into the store. The answer NS is as good as HD:
 * the same bytes are in the store already, and belong to the worker that put
 * them there. */
static int put_samples(struct maker *m, const struct sample_name *name)
{
	struct service_call calls[SCHEDULE_ECHO_MAX];
	char key[SERVICE_KEY_MAX];
	int rc;

	for (uint32_t k = 0; k < name->servings; k++) {
		(void)service_sample_key(key, m->job->id, name, k);
		call_put(&calls[k], key, stored_at(m, k),
			SAMPLE_HEAD_BYTES + m->job->s.sample_bytes, CALL_ADD, 0,
			SAMPLE_TTL_S);
	}
	rc = calls_make(m->hand->store, calls, name->servings);
	for (uint32_t k = 0; k < name->servings; k++) {
		struct maker_put *put = &m->mine[m->nmine];

		if (call_done(&calls[k]) && m->nmine < RANGE_SAMPLES_MAX) {
			(void)service_sample_key(put->key, m->job->id, name, k);
			put->cas = calls[k].cas;
			m->nmine++;
			work_count(&m->hand->work->samples, 1);
		} else if (rc == 0 && calls[k].kind != META_NS) {
			work_count(&m->hand->work->refused, 1);
			store_is_full(m->hand->work);
			rc = -ENOSPC;
		}
	}
	return rc;
}

/* Find the examples that have all their samples in the store already. */
static int find_present(
	struct maker *m, const struct work_range *r, uint32_t *mask)
{
	struct service_call calls[RANGE_SAMPLES_MAX];
	char key[SERVICE_KEY_MAX];
	unsigned n = 0, at = 0;
	int rc;

	*mask = 0;
	for (uint32_t i = 0; i < r->r.count; i++)
		for (uint32_t k = 0; k < r->r.example[i].servings; k++) {
			if (n == RANGE_SAMPLES_MAX)
				return 0;
			(void)service_sample_key(
				key, m->job->id, &r->r.example[i], k);
			call_get(&calls[n++], key, NULL, 0);
		}
	rc = calls_make(m->hand->store, calls, n);
	for (uint32_t i = 0; rc == 0 && i < r->r.count; i++) {
		bool all = true;

		for (uint32_t k = 0; k < r->r.example[i].servings; k++)
			all &= call_done(&calls[at++]);
		*mask |= (uint32_t)all << i;
	}
	return rc;
}

void maker_drop(struct maker *m)
{
	struct service_call calls[RANGE_SAMPLES_MAX];

	for (unsigned i = 0; i < m->nmine; i++)
		call_delete(&calls[i], m->mine[i].key, m->mine[i].cas);
	/* If the store does not answer, the samples expire. */
	(void)calls_make(m->hand->store, calls, m->nmine);
	m->nmine = 0;
}

/* -- A range --------------------------------------------------------------- */

static int use_job(struct maker *m, const struct work_job *j)
{
	if (m->job == j)
		return 0;
	sampler_free(m->sampler);
	m->sampler = NULL;
	m->job = j;
	return sampler_new(&m->sampler, &j->s);
}

static int making_begin(struct making *g, const struct work_job *j)
{
	struct schedule_config c;
	struct error err;

	settings_schedule(&j->s, j->conf.examples, NULL, &c);
	return schedule_init(&g->seeds, &c, &err);
}

uint32_t maker_make(struct maker *m, const struct work_range *r)
{
	struct work *w = m->hand->work;
	struct making g;
	uint32_t mask = 0;
	int rc = use_job(m, r->job);

	m->nmine = 0;
	if (rc == 0)
		rc = making_begin(&g, r->job);
	if (rc == 0)
		rc = find_present(m, r, &mask);
	for (uint32_t i = 0; rc == 0 && i < r->r.count; i++) {
		if (mask >> i & 1) {
			work_count(&w->reused, 1);
			continue;
		}
		if (work_is_lost(m->hand))
			break;
		g.slot = (struct schedule_slot){.pass = r->r.example[i].pass,
			.index = r->r.example[i].index};
		if (make_samples(m, &r->r.example[i], &g) < 0) {
			/* The reader makes this example itself, and reports the
			 * error. */
			work_count(&w->failed, 1);
			continue;
		}
		rc = put_samples(m, &r->r.example[i]);
		mask |= (uint32_t)(rc == 0) << i;
	}
	return mask;
}

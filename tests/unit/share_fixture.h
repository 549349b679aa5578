/* SPDX-License-Identifier: MIT */
/* For tests of src/loader/share: a host whose batches the fixture makes up, and
 * members that send and receive one message at a time. */
#ifndef SHARE_FIXTURE_H
#define SHARE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loader/share/share_host_impl.h"
#include "suite.h"

#define WAIT_MS 600000
#define SLOTS 3
#define SLOT_BYTES 4096

static char run_dir[256];

static inline void make_dir(void)
{
	(void)snprintf(
		run_dir, sizeof(run_dir), "%s/share.XXXXXX", test_memory_dir());
	ck_assert_ptr_nonnull(mkdtemp(run_dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", run_dir, 1), 0);
}

static inline void remove_dir(void)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", run_dir);
	ck_assert_int_eq(system(command), 0);
}

static inline struct share_msg hello_of(uint64_t id, uint64_t step)
{
	struct share_msg m = {.type = SHARE_HELLO,
		.hello = {.id = id,
			.step = step,
			.wish = SHARE_WISH_NEW,
			.batch = 4,
			.name = "x",
			.label = "test"}};

	return m;
}

/* A run of `steps` batches without content. The host's thread calls its
 * functions, except released(). */
struct made_up {
	struct batch_source source;
	struct share_area area;
	struct lent_batch batches[SLOTS];
	refrain_status status[4];
	bool used[SLOTS];
	uint64_t next, steps;
	_Atomic uint32_t lent, most;
	int fd;
	int fail; /* status that next() returns at the end */
};

static struct made_up *the_made_up;

static inline void made_up_release(struct lent_batch *b)
{
	struct made_up *m = the_made_up;

	m->used[b - m->batches] = false;
	m->lent--;
}

static inline int made_up_next(
	struct batch_source *source, struct lent_batch **out, int timeout_ms)
{
	struct made_up *m = CONTAINER_OF(source, struct made_up, source);
	uint32_t i = 0;

	ck_assert_int_eq(timeout_ms, 0);
	if (m->next == m->steps)
		return m->fail;
	while (m->used[i])
		ck_assert_uint_lt(++i, SLOTS);
	m->used[i] = true;
	m->most = ++m->lent > m->most ? (uint32_t)m->lent : (uint32_t)m->most;
	memset((char *)m->area.base + i * SLOT_BYTES, (int)m->next, SLOT_BYTES);
	m->batches[i] = (struct lent_batch){
		.batch = {.data = (char *)m->area.base + i * SLOT_BYTES,
			.status = m->status,
			.step = m->next++,
			.count = 4,
			.fresh = 4},
		.release = made_up_release};
	*out = &m->batches[i];
	return 1;
}

static inline int made_up_fd(struct batch_source *source)
{
	return CONTAINER_OF(source, struct made_up, source)->fd;
}

static inline int made_up_close(struct batch_source *source)
{
	(void)source;
	return 0;
}

static inline void made_up_message(
	struct batch_source *source, struct error *out)
{
	(void)source;
	(void)error_set(out, -EIO, "it is made up");
}

static inline int check_label(
	void *arg, const struct share_hello *hello, struct error *err)
{
	(void)arg;
	return strcmp(hello->label, "test") == 0
		? 0
		: error_set(err, -ESTALE, "label differs");
}

static inline int begin_made_up(
	void *arg, uint64_t step, struct share_stream *out, struct error *err)
{
	struct made_up *m = arg;

	(void)err;
	ck_assert_int_eq(share_area_new(&m->area, SLOTS * SLOT_BYTES), 0);
	m->next = step;
	*out = (struct share_stream){
		.source = &m->source,
		.area = m->area,
		.slots = SLOTS,
		.slot_bytes = SLOT_BYTES,
	};
	return 0;
}

static inline uint64_t tenth_from(void *arg, uint64_t step)
{
	(void)arg;
	return step > 10 ? UINT64_MAX : 10;
}

struct scene {
	struct made_up m;
	struct share_place *place;
	struct share_host *host;
};

static inline void scene_begin(struct scene *s, uint64_t steps, uint32_t jobs)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from,
			.arg = &s->m},
		.jobs = jobs,
	};
	static const struct loader_ops made_up_ops = {.next = made_up_next,
		.fd = made_up_fd,
		.close = made_up_close,
		.message = made_up_message};
	struct error err = {""};

	memset(s, 0, sizeof(*s));
	s->m.source.ops = &made_up_ops;
	s->m.steps = steps;
	the_made_up = &s->m;
	s->m.fd = eventfd(1, EFD_CLOEXEC);
	ck_assert_int_eq(share_place_get(&s->place, "x", &err), 0);
	config.place = s->place;
	ck_assert_msg(
		share_host_start(&s->host, &config, &err) == 0, "%s", err.msg);
}

static inline void scene_end(struct scene *s)
{
	ck_assert_int_eq(share_host_stop(s->host), 0);
	share_place_put(s->place);
	ck_assert_uint_eq(s->m.lent, 0);
	(void)close(s->m.fd);
}

/* A member of the scene. */
struct joined {
	struct share_link link;
	struct share_area area;
	struct share_welcome welcome;
};

static inline int join_with(struct scene *s, struct joined *j,
	const struct share_hello *hello, struct error *err)
{
	memset(j, 0, sizeof(*j));
	ck_assert_int_eq(share_link_open(&j->link, s->place, err), 0);
	return share_link_join(&j->link, hello, WAIT_MS, &j->welcome, err);
}

static inline void join_at(struct scene *s, struct joined *j, uint64_t id)
{
	struct share_msg hello = hello_of(id, 0);
	struct error err = {""};
	int rc = join_with(s, j, &hello.hello, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, err.msg);
}

/* Receive the next message that is not a view. */
static inline int next_message(
	struct joined *j, struct share_msg *msg, int timeout_ms)
{
	int rc, fd;

	do {
		rc = share_link_recv(&j->link, msg, &fd, timeout_ms);
		if (rc == 1 && msg->type == SHARE_SEGMENT)
			ck_assert_int_eq(share_area_map(&j->area, fd,
						 msg->segment.bytes),
				0);
		if (rc == 1 && fd >= 0)
			(void)close(fd);
	} while (rc == 1 &&
		(msg->type == SHARE_VIEW || msg->type == SHARE_SEGMENT));
	return rc;
}

static inline uint64_t take_batch(struct joined *j)
{
	struct share_msg msg;
	const char *at;

	ck_assert_int_eq(next_message(j, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_BATCH);
	at = (const char *)j->area.base + msg.batch.slot * SLOT_BYTES;
	ck_assert_int_eq(at[SLOT_BYTES - 1], (int)msg.batch.step);
	return msg.batch.step;
}

static inline void give_back(struct joined *j, uint64_t step)
{
	struct share_msg msg = {.type = SHARE_RELEASE, .step.step = step};

	ck_assert_int_eq(share_link_send(&j->link, &msg), 0);
}

static inline void part(struct joined *j)
{
	share_link_close(&j->link);
	share_area_release(&j->area);
}

static inline void say(struct joined *j, enum share_type type, uint64_t step)
{
	struct share_msg msg = {.type = type, .step.step = step};

	ck_assert_int_eq(share_link_send(&j->link, &msg), 0);
}

static inline void join_solo(struct scene *s, struct joined *j, uint64_t id)
{
	struct share_msg hello = hello_of(id, 0);
	struct error err = {""};

	hello.hello.grace_s = 1;
	ck_assert_int_eq(join_with(s, j, &hello.hello, &err), 0);
}

#endif

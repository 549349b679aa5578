/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/share: messages, places, the memory, and a host whose batches
 * are made up here.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "share/host_impl.h"
#include "suite.h"

#define WAIT_MS 600000
#define SLOTS 3
#define SLOT_BYTES 4096
#define ANYTHING 10000 /* messages */

static char run_dir[256];

static void make_dir(void)
{
	(void)snprintf(
		run_dir, sizeof(run_dir), "%s/share.XXXXXX", test_memory_dir());
	ck_assert_ptr_nonnull(mkdtemp(run_dir));
	ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", run_dir, 1), 0);
}

static void remove_dir(void)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", run_dir);
	ck_assert_int_eq(system(command), 0);
}

/* -- Messages -------------------------------------------------------------- */

static struct share_msg hello_of(uint64_t id, uint64_t step)
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

static struct share_msg message_of_type(unsigned type)
{
	struct share_msg m = hello_of(1, 0);

	if (type == SHARE_HELLO)
		return m;
	memset(&m, 0, sizeof(m));
	m.type = (enum share_type)type;
	if (type == SHARE_REFUSE)
		m.refuse.error = -ESTALE;
	if (type == SHARE_SEGMENT)
		m.segment = (struct share_segment){
			.bytes = 8192, .slot_bytes = 4096, .slots = 2};
	if (type == SHARE_BATCH)
		m.batch.count = m.batch.fresh = 3;
	if (type == SHARE_CHANGE)
		m.change = (struct share_change){7, 5, 2};
	if (type == SHARE_VIEW)
		m.view.jobs_n = 2;
	return m;
}

START_TEST(test_every_message_comes_out_as_it_went_in)
{
	struct share_msg in = message_of_type((unsigned)_i), out;
	char bytes[WIRE_BYTES_MAX];
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	ck_assert_uint_gt(n, sizeof(struct wire_head));
	memset(&out, 0, sizeof(out));
	ck_assert_int_eq(share_msg_parse(bytes, n, &out), 0);
	ck_assert_int_eq(memcmp(&in, &out, sizeof(in)), 0);
	ck_assert_uint_eq(share_msg_print(&in, bytes, n - 1), 0);
}
END_TEST

START_TEST(test_a_message_of_any_other_length_is_refused)
{
	struct share_msg in = message_of_type((unsigned)_i), out;
	char bytes[WIRE_BYTES_MAX + 8] = {0};
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(share_msg_parse(bytes, i, &out), -EBADMSG);
	ck_assert_int_eq(share_msg_parse(bytes, n + 8, &out), -EBADMSG);
}
END_TEST

static int parse_with(unsigned type, size_t at, uint8_t byte)
{
	struct share_msg in = message_of_type(type), out;
	char bytes[WIRE_BYTES_MAX];
	size_t n = share_msg_print(&in, bytes, sizeof(bytes));

	bytes[at] = (char)byte;
	return share_msg_parse(bytes, n, &out);
}

START_TEST(test_a_message_with_what_cannot_be_is_refused)
{
	size_t head = sizeof(struct wire_head);

	ck_assert_int_eq(parse_with(SHARE_HELLO, 0, 1), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 4, 9), -EPROTONOSUPPORT);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 6, SHARE_TYPES), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO, 12, 1), -EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_HELLO,
				 head + offsetof(struct share_hello, wish), 9),
		-EBADMSG);
	ck_assert_int_eq(
		parse_with(SHARE_HELLO,
			head + offsetof(struct share_hello, prints_n), 200),
		-EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_BATCH,
				 head + offsetof(struct share_batch, fresh), 4),
		-EBADMSG);
	ck_assert_int_eq(
		parse_with(SHARE_SEGMENT,
			head + offsetof(struct share_segment, slots), 3),
		-EBADMSG);
	ck_assert_int_eq(parse_with(SHARE_VIEW,
				 head + offsetof(struct share_view, jobs_n), 3),
		-EBADMSG);
}
END_TEST

/* -- Places ---------------------------------------------------------------- */

START_TEST(test_names_that_are_no_file_names_are_refused)
{
	char name[256];
	struct error err = {""};

	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	ck_assert_int_eq(share_name_check(name, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "255"));
	ck_assert_int_eq(share_name_check("a/b", &err), -EINVAL);
	ck_assert_int_eq(share_name_check("..", &err), -EINVAL);
	ck_assert_int_eq(share_name_check("", &err), -EINVAL);
	name[SHARE_NAME_MAX] = '\0';
	ck_assert_int_eq(share_name_check(name, &err), 0);
}
END_TEST

START_TEST(test_a_place_is_one_object_for_all_openers)
{
	struct share_place *a, *b;
	struct error err = {""};

	ck_assert_int_eq(share_place_get(&a, "x", &err), 0);
	ck_assert_int_eq(share_place_get(&b, "x", &err), 0);
	ck_assert_ptr_eq(a, b);
	ck_assert_int_eq(place_lock(a, &err), 0);
	ck_assert_int_eq(place_lock(b, &err), -EAGAIN);
	share_place_put(b);
	place_unlock(a);
	ck_assert_int_eq(place_lock(a, &err), 0);
	ck_assert_int_eq(place_connect(a), -ENOENT);
	share_place_put(a);
}
END_TEST

START_TEST(test_a_directory_that_others_can_enter_is_refused)
{
	struct share_place *place;
	struct error err = {""};
	char dir[300];

	(void)snprintf(dir, sizeof(dir), "%s/refrain-share", run_dir);
	ck_assert_int_eq(mkdir(dir, 0755), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(share_place_get(&place, "x", &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.msg, "other users"));
}
END_TEST

/* -- The memory ------------------------------------------------------------ */

START_TEST(test_memory_is_writable_for_its_host_alone)
{
	struct share_area host, member;
	char *bytes;

	ck_assert_int_eq(share_area_new(&host, 8192), 0);
	ck_assert_int_eq(share_area_map(&member, host.fd, 8192), 0);
	bytes = host.base;
	bytes[5000] = 42;
	ck_assert_int_eq(((char *)member.base)[5000], 42);
	ck_assert_int_ne(mprotect(member.base, 8192, PROT_WRITE), 0);
	ck_assert_ptr_eq(mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, host.fd, 0),
		MAP_FAILED);
	ck_assert_int_lt(pwrite(host.fd, "x", 1, 0), 0);
	ck_assert_int_ne(ftruncate(host.fd, 0), 0);
	share_area_release(&member);
	share_area_release(&host);
}
END_TEST

START_TEST(test_memory_that_could_change_under_its_reader_is_refused)
{
	CLEANUP_FD int open_fd = memfd_create("x", MFD_ALLOW_SEALING);
	struct share_area host, member;

	ck_assert_int_eq(share_area_new(&host, 4096), 0);
	ck_assert_int_eq(share_area_map(&member, host.fd, 8192), -EBADMSG);
	ck_assert_int_eq(ftruncate(open_fd, 8192), 0);
	ck_assert_int_eq(share_area_map(&member, open_fd, 8192), -EBADMSG);
	ck_assert_int_eq(
		fcntl(open_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	ck_assert_int_eq(share_area_map(&member, open_fd, 8192), -EBADMSG);
	share_area_release(&host);
}
END_TEST

/* -- A host ---------------------------------------------------------------- */

/* A run of `steps` batches. Called by the host's thread, but for released. */
struct made_up {
	struct batch_source source;
	struct share_area area;
	struct lent_batch batches[SLOTS];
	refrain_status status[4];
	bool used[SLOTS];
	uint64_t next, steps;
	_Atomic uint32_t lent, most;
	int fd;
	int fail; /* at the end */
};

static struct made_up *the_made_up;

static void made_up_release(struct lent_batch *b)
{
	struct made_up *m = the_made_up;

	m->used[b - m->batches] = false;
	m->lent--;
}

static int made_up_next(
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

static int made_up_fd(struct batch_source *source)
{
	return CONTAINER_OF(source, struct made_up, source)->fd;
}

static int made_up_close(struct batch_source *source)
{
	(void)source;
	return 0;
}

static void made_up_message(struct batch_source *source, struct error *out)
{
	(void)source;
	(void)error_set(out, -EIO, "it is made up");
}

static int check_label(
	void *arg, const struct share_hello *hello, struct error *err)
{
	(void)arg;
	return strcmp(hello->label, "test") == 0
		? 0
		: error_set(err, -ESTALE, "label differs");
}

static int begin_made_up(
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

static uint64_t tenth_from(void *arg, uint64_t step)
{
	(void)arg;
	return step > 10 ? UINT64_MAX : 10;
}

struct scene {
	struct made_up m;
	struct share_place *place;
	struct share_host *host;
};

static void scene_begin(struct scene *s, uint64_t steps, uint32_t jobs)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from,
			.arg = &s->m},
		.jobs = jobs,
	};
	struct error err = {""};

	memset(s, 0, sizeof(*s));
	s->m.source = (struct batch_source){
		made_up_next, made_up_fd, made_up_close, made_up_message};
	s->m.steps = steps;
	the_made_up = &s->m;
	s->m.fd = eventfd(1, EFD_CLOEXEC);
	ck_assert_int_eq(share_place_get(&s->place, "x", &err), 0);
	config.place = s->place;
	ck_assert_msg(
		share_host_start(&s->host, &config, &err) == 0, "%s", err.msg);
}

static void scene_end(struct scene *s)
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

static int join_with(struct scene *s, struct joined *j,
	const struct share_hello *hello, struct error *err)
{
	memset(j, 0, sizeof(*j));
	ck_assert_int_eq(share_link_open(&j->link, s->place, err), 0);
	return share_link_join(&j->link, hello, WAIT_MS, &j->welcome, err);
}

static void join_at(struct scene *s, struct joined *j, uint64_t id)
{
	struct share_msg hello = hello_of(id, 0);
	struct error err = {""};
	int rc = join_with(s, j, &hello.hello, &err);

	ck_assert_msg(rc == 0, "%d: %s", rc, err.msg);
}

/* The next message that is not a view. */
static int next_message(struct joined *j, struct share_msg *msg, int timeout_ms)
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

static uint64_t take_batch(struct joined *j)
{
	struct share_msg msg;
	const char *at;

	ck_assert_int_eq(next_message(j, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_BATCH);
	at = (const char *)j->area.base + msg.batch.slot * SLOT_BYTES;
	ck_assert_int_eq(at[SLOT_BYTES - 1], (int)msg.batch.step);
	return msg.batch.step;
}

static void give_back(struct joined *j, uint64_t step)
{
	struct share_msg msg = {.type = SHARE_RELEASE, .step.step = step};

	ck_assert_int_eq(share_link_send(&j->link, &msg), 0);
}

static void part(struct joined *j)
{
	share_link_close(&j->link);
	share_area_release(&j->area);
}

START_TEST(test_all_members_get_every_batch)
{
	struct joined j[2];
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	ck_assert_int_eq(next_message(&j[0], &msg, 0), 0); /* one of two */
	join_at(&s, &j[1], 2);
	for (uint64_t step = 0; step < 20; step++)
		for (int i = 0; i < 2; i++) {
			ck_assert_uint_eq(take_batch(&j[i]), step);
			give_back(&j[i], step);
		}
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(next_message(&j[i], &msg, WAIT_MS), 1);
		ck_assert_int_eq(msg.type, SHARE_END);
		ck_assert_uint_eq(msg.step.step, 20);
		part(&j[i]);
	}
	ck_assert_uint_le(s.m.most, SLOTS);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_slot_is_used_again_when_the_last_member_has_released_it)
{
	struct joined j[2];
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	join_at(&s, &j[1], 2);
	for (uint64_t step = 0; step < SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	for (uint64_t step = 0; step < SLOTS; step++)
		ck_assert_uint_eq(take_batch(&j[1]), step);
	give_back(&j[1], 1);
	ck_assert_uint_eq(take_batch(&j[0]), SLOTS);
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	part(&j[1]); /* drops what it held */
	ck_assert_uint_eq(take_batch(&j[0]), SLOTS + 1);
	part(&j[0]);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_dead_member_is_dropped_though_its_child_has_the_socket)
{
	struct joined j, k;
	struct scene s;
	int status, hold[2], told[2];
	char byte;
	pid_t pid;

	scene_begin(&s, 20, 2);
	join_at(&s, &j, 1);
	ck_assert_int_eq(pipe(hold), 0);
	ck_assert_int_eq(pipe(told), 0);
	pid = fork();
	if (pid == 0) {
		struct joined dead;

		(void)close(hold[1]);
		join_at(&s, &dead, 2);
		if (fork() == 0) { /* lives on, with the socket */
			(void)!read(hold[0], &byte, 1);
			_exit(0);
		}
		(void)!write(told[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	ck_assert_int_eq(read(told[0], &byte, 1), 1);
	for (uint64_t step = 0; step < SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_uint_eq(take_batch(&j), SLOTS);
	/* Its place is free again. */
	join_at(&s, &k, 3);
	ck_assert_uint_eq(k.welcome.step, 10);
	part(&k);
	part(&j);
	(void)close(hold[1]);
	scene_end(&s);
	(void)close(hold[0]);
	(void)close(told[0]);
	(void)close(told[1]);
}
END_TEST

START_TEST(test_who_is_late_begins_with_the_next_epoch)
{
	struct share_msg hello = hello_of(2, 0);
	struct error err = {""};
	struct joined j, k;
	struct scene s;

	scene_begin(&s, 20, 1);
	join_at(&s, &j, 1);
	for (uint64_t step = 0; step < 5; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	join_at(&s, &k, 2);
	ck_assert_uint_eq(k.welcome.step, 10);
	for (uint64_t step = 5; step < 14; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
		if (step >= 10) {
			ck_assert_uint_eq(take_batch(&k), step);
			give_back(&k, step);
		}
	}
	part(&k);
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "last epoch"));
	share_link_close(&k.link);
	hello.hello.wish = SHARE_WISH_STEP;
	hello.hello.step = 3;
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "past step 3"));
	share_link_close(&k.link);
	part(&j);
	scene_end(&s);
}
END_TEST

START_TEST(test_the_stream_begins_at_the_least_step_that_is_wanted)
{
	struct share_msg hello = hello_of(1, 0);
	struct error err = {""};
	struct joined j[2];
	struct scene s;

	scene_begin(&s, 20, 2);
	hello.hello.wish = SHARE_WISH_STEP;
	for (unsigned i = 0; i < 2; i++) {
		hello.hello.id = i;
		hello.hello.step = i ? 7 : 9;
		ck_assert_int_eq(join_with(&s, &j[i], &hello.hello, &err), 0);
	}
	for (uint64_t step = 7; step < 12; step++)
		for (int i = 0; i < 2; i++) {
			if (step < 9 && i == 0)
				continue;
			ck_assert_uint_eq(take_batch(&j[i]), step);
			give_back(&j[i], step);
		}
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_member_that_talks_nonsense_is_dropped)
{
	struct share_msg hello = hello_of(1, 0), msg;
	struct error err = {""};
	struct joined j, k;
	struct scene s;

	scene_begin(&s, 20, 1);
	hello.hello.label[0] = 'T';
	ck_assert_int_eq(join_with(&s, &k, &hello.hello, &err), -ESTALE);
	ck_assert_str_eq(err.msg, "label differs");
	share_link_close(&k.link);
	join_at(&s, &j, 1);
	ck_assert_int_eq(share_link_open(&k.link, s.place, &err), 0);
	ck_assert_int_eq(write(k.link.fd, "nonsense", 8), 8);
	ck_assert_int_eq(next_message(&k, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	ck_assert_int_eq(next_message(&k, &msg, WAIT_MS), -EPIPE);
	share_link_close(&k.link);
	/* A step that it was not given. */
	ck_assert_uint_eq(take_batch(&j), 0);
	give_back(&j, 19);
	do
		ck_assert_int_eq(next_message(&j, &msg, WAIT_MS), 1);
	while (msg.type == SHARE_BATCH);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	part(&j);
	/* The view counts them. */
	ck_assert_int_eq(share_link_open(&k.link, s.place, &err), 0);
	msg.type = SHARE_ASK;
	msg.step.step = 0;
	ck_assert_int_eq(share_link_send(&k.link, &msg), 0);
	ck_assert_int_eq(
		share_link_recv(&k.link, &msg, &(int){-1}, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_VIEW);
	ck_assert_uint_eq(msg.view.malformed, 2);
	ck_assert_uint_eq(msg.view.jobs_n, 0);
	share_link_close(&k.link);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_failure_is_everybodys)
{
	struct joined j;
	struct share_msg msg;
	struct scene s;

	scene_begin(&s, 1, 1);
	s.m.fail = -EIO;
	join_at(&s, &j, 1);
	ck_assert_uint_eq(take_batch(&j), 0);
	ck_assert_int_eq(next_message(&j, &msg, WAIT_MS), 1);
	ck_assert_int_eq(msg.type, SHARE_REFUSE);
	ck_assert_int_eq(msg.refuse.error, -EIO);
	ck_assert_str_eq(msg.refuse.text, "it is made up");
	part(&j);
	scene_end(&s);
}
END_TEST

START_TEST(test_a_host_begins_with_its_own_member)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.begun = true,
		.own = 7,
	};
	struct error err = {""};
	struct joined j[2];
	struct share_msg hello = hello_of(2, 0), msg;
	struct scene s;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	/* A new one might want steps that are over. */
	ck_assert_int_eq(join_with(&s, &j[0], &hello.hello, &err), -EAGAIN);
	ck_assert_ptr_nonnull(strstr(err.msg, "a new host"));
	part(&j[0]);
	hello.hello.wish = SHARE_WISH_AGAIN;
	hello.hello.step = 5;
	for (unsigned i = 0; i < 2; i++) {
		hello.hello.id = i ? 7 : 1;
		ck_assert_int_eq(join_with(&s, &j[i], &hello.hello, &err), 0);
		if (i == 0)
			ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	}
	ck_assert_uint_eq(take_batch(&j[0]), 5);
	ck_assert_uint_eq(take_batch(&j[1]), 5);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* -- Members that are slow ------------------------------------------------- */

static void say(struct joined *j, enum share_type type, uint64_t step)
{
	struct share_msg msg = {.type = type, .step.step = step};

	ck_assert_int_eq(share_link_send(&j->link, &msg), 0);
}

static void join_solo(struct scene *s, struct joined *j, uint64_t id)
{
	struct share_msg hello = hello_of(id, 0);
	struct error err = {""};

	hello.hello.grace_s = 1;
	ck_assert_int_eq(join_with(s, j, &hello.hello, &err), 0);
}

START_TEST(test_a_member_that_is_parted_keeps_what_it_has_taken)
{
	struct joined j[2];
	struct share_msg msg;
	const char *taken;
	struct scene s;

	scene_begin(&s, 40, 2);
	join_at(&s, &j[0], 1);
	join_solo(&s, &j[1], 2);
	ck_assert_uint_eq(take_batch(&j[0]), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 0);
	give_back(&j[0], 0);
	give_back(&j[1], 0);
	for (uint64_t step = 1; step <= SLOTS; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_int_eq(next_message(&j[1], &msg, WAIT_MS), 1);
	ck_assert_uint_eq(msg.batch.step, 1);
	taken = (const char *)j[1].area.base + msg.batch.slot * SLOT_BYTES;
	say(&j[1], SHARE_TAKE, 1);
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 0);
	say(&j[0], SHARE_WAIT, SLOTS + 1);
	for (uint64_t step = SLOTS + 1; step < 20; step++) {
		ck_assert_uint_eq(take_batch(&j[0]), step);
		give_back(&j[0], step);
	}
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 1);
	/* No slot of the others was that of step 1. */
	ck_assert_int_eq(*taken, 1);
	do
		ck_assert_int_eq(next_message(&j[1], &msg, WAIT_MS), 1);
	while (msg.type == SHARE_BATCH);
	ck_assert_int_eq(msg.type, SHARE_ALONE);
	ck_assert_uint_eq(msg.step.step, 2);
	/* It is not there yet, then it is. */
	give_back(&j[1], 1);
	say(&j[1], SHARE_ALONE, 3);
	ck_assert_int_eq(next_message(&j[1], &msg, 10), 0);
	say(&j[1], SHARE_ALONE, 22);
	ck_assert_uint_eq(take_batch(&j[0]), 20);
	give_back(&j[0], 20);
	ck_assert_uint_eq(take_batch(&j[0]), 21);
	give_back(&j[0], 21);
	ck_assert_uint_eq(take_batch(&j[1]), 22);
	ck_assert_uint_eq(j[1].area.words->parted[j[1].welcome.place], 0);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* -- Too many -------------------------------------------------------------- */

START_TEST(test_who_says_nothing_takes_nobodys_place)
{
	struct share_link silent[SHARE_MEMBERS_MAX];
	struct error err = {""};
	struct share_msg msg;
	struct joined j[2];
	struct scene s;

	scene_begin(&s, 20, 2);
	join_at(&s, &j[0], 1);
	for (int i = 0; i < SHARE_MEMBERS_MAX; i++)
		ck_assert_int_eq(share_link_open(&silent[i], s.place, &err), 0);
	join_at(&s, &j[1], 2);
	ck_assert_uint_eq(take_batch(&j[0]), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 0);
	/*
	 * A member that had to give way learns it by the end of its connection.
	 */
	ck_assert_int_eq(
		share_link_recv(&silent[0], &msg, &(int){-1}, WAIT_MS), -EPIPE);
	for (int i = 0; i < SHARE_MEMBERS_MAX; i++)
		share_link_close(&silent[i]);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* Processor time of the host's thread. */
static uint64_t host_cpu_ns(const struct scene *s)
{
	struct timespec t;
	clockid_t clock;

	ck_assert_int_eq(pthread_getcpuclockid(s->host->thread, &clock), 0);
	ck_assert_int_eq(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Asks from a process of its own, which has descriptors. */
static pid_t ask_from_outside(const struct scene *s, const struct rlimit *limit)
{
	struct share_msg msg = {.type = SHARE_ASK};
	struct share_link link;
	struct error err = {""};
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (setrlimit(RLIMIT_NOFILE, limit) < 0 ||
		share_link_open(&link, s->place, &err) < 0 ||
		share_link_send(&link, &msg) < 0 ||
		share_link_recv(&link, &msg, &(int){-1}, WAIT_MS) != 1)
		_exit(1);
	_exit(0);
}

START_TEST(test_a_host_without_descriptors_does_not_spin)
{
	struct rlimit limit, none;
	uint64_t cpu_ns;
	struct scene s;
	int status;
	pid_t pid;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	pid = ask_from_outside(&s, &limit);
	cpu_ns = host_cpu_ns(&s);
	(void)poll(NULL, 0, 500); /* the time in which it could spin */
	ck_assert_uint_lt(host_cpu_ns(&s) - cpu_ns, 100 * NS_PER_MS);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	scene_end(&s);
}
END_TEST

static int hanging_pipe[2];

static int begin_hanging(
	void *arg, uint64_t step, struct share_stream *out, struct error *err)
{
	char byte;

	ck_assert_int_eq(read(hanging_pipe[0], &byte, 1), 1);
	return begin_made_up(arg, step, out, err);
}

START_TEST(test_a_host_that_hangs_is_left_behind_within_a_second)
{
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_hanging,
			.epoch_from = tenth_from},
		.jobs = 1,
	};
	struct error err = {""};
	struct pollfd p = {.events = POLLIN};
	struct joined j;
	struct scene s;
	uint64_t began_ns;

	ck_assert_int_eq(pipe(hanging_pipe), 0);
	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	join_at(&s, &j, 1);
	/* 0.95 s; more on a busy machine, but not for ever. */
	began_ns = clock_now_ns();
	ck_assert_int_eq(share_host_stop(s.host), 1);
	ck_assert_uint_lt(
		clock_now_ns() - began_ns, 5 * NS_PER_S * TIME_LIMIT_FACTOR);
	ck_assert_int_eq(write(hanging_pipe[1], "x", 1), 1);
	p.fd = share_host_done_fd(s.host);
	ck_assert_int_eq(poll(&p, 1, WAIT_MS), 1);
	part(&j);
	scene_end(&s);
	(void)close(hanging_pipe[0]);
	(void)close(hanging_pipe[1]);
}
END_TEST

START_TEST(test_the_next_host_waits_for_the_members_of_the_one_before)
{
	struct share_view before = {.jobs_n = 2, .begun = 1};
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.before = &before,
		.begun = true,
		.generation = 1,
	};
	struct joined j[2];
	char who[32];
	struct share_msg hello = hello_of(11, 5), msg;
	struct error err = {""};
	struct scene s;

	/* One lives; the number of the other is another process's now. */
	for (unsigned i = 0; i < 2; i++)
		before.jobs[i] = (struct share_job){.id = 10 + i,
			.pid = (uint32_t)getpid(),
			.born = proc_born(getpid()) + (i == 0)};
	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	config.place = s.place;
	config.ops.arg = &s.m;
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	hello.hello.wish = SHARE_WISH_AGAIN;
	hello.hello.id = 12; /* nobody knows it */
	hello.hello.step = 6;
	ck_assert_int_eq(join_with(&s, &j[0], &hello.hello, &err), 0);
	ck_assert_uint_eq(j[0].welcome.generation, 1);
	ck_assert_int_eq(next_message(&j[0], &msg, 10), 0);
	say(&j[0], SHARE_ASK, 0);
	do
		ck_assert_int_eq(
			share_link_recv(&j[0].link, &msg, &(int){-1}, WAIT_MS),
			1);
	while (msg.type != SHARE_VIEW || !msg.view.missing);
	(void)snprintf(who, sizeof(who), "process %d", (int)getpid());
	ck_assert_str_eq(msg.view.text, who);
	hello.hello.id = 11;
	hello.hello.step = 5;
	ck_assert_int_eq(join_with(&s, &j[1], &hello.hello, &err), 0);
	ck_assert_uint_eq(take_batch(&j[1]), 5);
	ck_assert_uint_eq(take_batch(&j[1]), 6);
	ck_assert_uint_eq(take_batch(&j[0]), 6);
	part(&j[0]);
	part(&j[1]);
	scene_end(&s);
}
END_TEST

/* -- Messages of any kind -------------------------------------------------- */

static uint32_t drawn = 1;

static uint32_t draw(uint32_t below)
{
	drawn = drawn * 1664525 + 1013904223;
	return (drawn >> 8) % below;
}

/* One that a member could say, at a step near to those of the run. */
static struct share_msg message_of_any_type(void)
{
	static const enum share_type types[] = {SHARE_HELLO, SHARE_RELEASE,
		SHARE_WAIT, SHARE_ASK, SHARE_ALONE, SHARE_TAKE, SHARE_BATCH,
		SHARE_VIEW, SHARE_WELCOME, SHARE_CHANGE};
	struct share_msg m = hello_of(2 + draw(3), draw(24));

	m.hello.wish = 1 + draw(4);
	m.hello.grace_s = draw(2);
	if (draw(3) == 0)
		return m;
	memset(&m, 0, sizeof(m));
	m.type = types[draw(sizeof(types) / sizeof(*types))];
	m.step.step = draw(24);
	return m;
}

static void say_anything(const struct joined *j)
{
	struct share_msg m = message_of_any_type();
	char bytes[8192];
	size_t n = share_msg_print(&m, bytes, sizeof(bytes));

	if (draw(4) == 0)
		n = 1 + draw((uint32_t)n);
	for (uint32_t i = draw(4); i-- > 0;)
		bytes[draw((uint32_t)n)] = (char)draw(256);
	/* It may be gone, or full. */
	(void)!send(j->link.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_dropped(struct joined *j)
{
	struct share_msg m;
	int rc, fd;

	do {
		rc = share_link_recv(&j->link, &m, &fd, 0);
		if (fd >= 0)
			(void)close(fd);
	} while (rc == 1);
	return rc < 0;
}

/* It may have to come again: the host has not looked at all that wait. */
static void connect_again(struct scene *s, struct joined *j)
{
	struct error err = {""};
	int rc;

	share_link_close(&j->link);
	while ((rc = share_link_open(&j->link, s->place, &err)) == -EAGAIN)
		(void)poll(NULL, 0, 1);
	ck_assert_int_eq(rc, 0);
}

/* A batch of the honest member, if one is there. */
static unsigned take_if_ready(struct joined *j, uint64_t step)
{
	struct share_msg m;
	int rc = next_message(j, &m, 0);

	ck_assert_int_ge(rc, 0);
	if (rc == 0)
		return 0;
	ck_assert_int_eq(m.type, SHARE_BATCH);
	ck_assert_uint_eq(m.batch.step, step);
	give_back(j, step);
	return 1;
}

START_TEST(test_a_host_bears_messages_of_any_kind)
{
	struct joined j, k[2];
	struct scene s;
	uint64_t step = 0;

	scene_begin(&s, 100, 1);
	join_at(&s, &j, 1);
	for (unsigned i = 0; i < 2; i++) {
		k[i].link = (struct share_link){-1, -1, 0};
		connect_again(&s, &k[i]);
	}
	for (unsigned n = 0; n < ANYTHING; n++) {
		unsigned i = draw(2);

		say_anything(&k[i]);
		if (draw(8) == 0 || is_dropped(&k[i]))
			connect_again(&s, &k[i]);
		if (step < 100 * (uint64_t)n / ANYTHING)
			step += take_if_ready(&j, step);
	}
	share_link_close(&k[0].link);
	share_link_close(&k[1].link);
	for (; step < 100; step++) {
		ck_assert_uint_eq(take_batch(&j), step);
		give_back(&j, step);
	}
	part(&j);
	scene_end(&s);
}
END_TEST

/* -- Takeover -------------------------------------------------------------- */

static pid_t idle_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static uint32_t missing_now(struct joined *j, struct share_msg *msg)
{
	say(j, SHARE_ASK, 0);
	do
		ck_assert_int_eq(
			share_link_recv(&j->link, msg, &(int){-1}, WAIT_MS), 1);
	while (msg->type != SHARE_VIEW);
	return msg->view.missing;
}

/* One that lives, one that is stopped and may go on alone, and one that is
 * stopped and is waited for. */
START_TEST(test_the_next_host_waits_two_seconds_for_who_is_silent)
{
	struct share_view before = {.jobs_n = 3, .begun = 1};
	struct share_host_config config = {
		.ops = {.check = check_label,
			.begin = begin_made_up,
			.epoch_from = tenth_from},
		.before = &before,
		.begun = true,
	};
	struct share_msg hello = hello_of(9, 5), msg;
	struct error err = {""};
	uint64_t began_ns;
	struct joined j;
	struct scene s;
	pid_t pids[3];
	int status;

	scene_begin(&s, 20, 1);
	ck_assert_int_eq(share_host_stop(s.host), 0);
	for (unsigned i = 0; i < 3; i++) {
		pids[i] = idle_child();
		before.jobs[i] = (struct share_job){.id = 20 + i,
			.pid = (uint32_t)pids[i],
			.born = proc_born(pids[i]),
			.grace_s = i == 1};
		if (i == 0)
			continue;
		ck_assert_int_eq(kill(pids[i], SIGSTOP), 0);
		ck_assert_int_eq(waitpid(pids[i], &status, WUNTRACED), pids[i]);
	}
	config.place = s.place;
	config.ops.arg = &s.m;
	began_ns = clock_now_ns();
	ck_assert_int_eq(share_host_start(&s.host, &config, &err), 0);
	hello.hello.wish = SHARE_WISH_AGAIN;
	ck_assert_int_eq(join_with(&s, &j, &hello.hello, &err), 0);
	while (missing_now(&j, &msg) == 3)
		(void)poll(NULL, 0, 1);
	ck_assert_uint_ge(clock_now_ns() - began_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(msg.view.missing, 1);
	ck_assert_ptr_nonnull(strstr(msg.view.text, "(stopped)"));
	ck_assert_uint_eq(msg.view.begun, 0);
	ck_assert_int_eq(kill(pids[2], SIGKILL), 0);
	ck_assert_uint_eq(take_batch(&j), 5);
	for (unsigned i = 0; i < 3; i++) {
		(void)kill(pids[i], SIGKILL); /* perhaps again */
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
	}
	part(&j);
	scene_end(&s);
}
END_TEST

static void add_tests_of_processes(TCase *t)
{
	tcase_add_test(t,
		test_a_dead_member_is_dropped_though_its_child_has_the_socket);
	tcase_add_test(
		t, test_the_next_host_waits_for_the_members_of_the_one_before);
	tcase_add_test(
		t, test_the_next_host_waits_two_seconds_for_who_is_silent);
}

static Suite *suite(void)
{
	Suite *s = suite_create("share");
	TCase *t = case_with(s, "share", make_dir, remove_dir);

	tcase_add_loop_test(t, test_every_message_comes_out_as_it_went_in,
		SHARE_HELLO, SHARE_TYPES);
	tcase_add_loop_test(t, test_a_message_of_any_other_length_is_refused,
		SHARE_HELLO, SHARE_TYPES);
	tcase_add_test(t, test_a_message_with_what_cannot_be_is_refused);
	tcase_add_test(t, test_names_that_are_no_file_names_are_refused);
	tcase_add_test(t, test_a_place_is_one_object_for_all_openers);
	tcase_add_test(t, test_a_directory_that_others_can_enter_is_refused);
	tcase_add_test(t, test_memory_is_writable_for_its_host_alone);
	tcase_add_test(
		t, test_memory_that_could_change_under_its_reader_is_refused);
	tcase_add_test(t, test_all_members_get_every_batch);
	tcase_add_test(t,
		test_a_slot_is_used_again_when_the_last_member_has_released_it);
	tcase_add_test(t, test_who_is_late_begins_with_the_next_epoch);
	tcase_add_test(
		t, test_the_stream_begins_at_the_least_step_that_is_wanted);
	tcase_add_test(
		t, test_a_host_that_hangs_is_left_behind_within_a_second);
	tcase_add_test(t, test_a_member_that_is_parted_keeps_what_it_has_taken);
	tcase_add_test(t, test_who_says_nothing_takes_nobodys_place);
	tcase_add_test(t, test_a_member_that_talks_nonsense_is_dropped);
	tcase_add_test(t, test_a_failure_is_everybodys);
	tcase_add_test(t, test_a_host_begins_with_its_own_member);
	tcase_add_test(t, test_a_host_bears_messages_of_any_kind);
	/* valgrind closes connections above the limit that it has accepted */
	if (!test_on_valgrind())
		tcase_add_test(
			t, test_a_host_without_descriptors_does_not_spin);
	if (test_has_pidfd())
		add_tests_of_processes(t);
	return s;
}

int main(void)
{
	return run_suite(suite());
}

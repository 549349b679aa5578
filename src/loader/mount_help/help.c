/* SPDX-License-Identifier: MIT */
/* The thread that exchanges messages with the mount. This file starts it, does
 * its tasks, which help_work.c chooses, and stops it. The thread takes the
 * loader's lock only for short operations on lists, and waits for the daemon
 * without the lock. */
#include "loader/mount_help/help_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/magic.h"

/* The number of keys in the first request. */
#define KEYS_FIRST 256u
/* When the loader is closed, it waits for this time until the thread ends by
 * itself. */
#define LAST_WORD_NS (200 * NS_PER_MS)
/* The pause between attempts to reach the next daemon. The first attempt is
 * made without a pause. */
#define BACK_MIN_NS (10 * NS_PER_MS)
#define BACK_MAX_NS NS_PER_S
/* The usual memory for a request, an answer and the tables for both, in bytes.
 */
#define TALK_BYTES (2 * HELP_REQUEST_BYTES)

/* -- Tasks ----------------------------------------------------------------- */

static void keep_key(
	struct mount_help *m, uint64_t file, const struct answer_key *answer)
{
	struct help_key *key = &m->keys[file % m->keys_count];

	m->known += !key->file_1;
	*key = (struct help_key){
		.key = answer->key,
		.bytes = answer->bytes,
		.file_1 = (uint32_t)(file + 1),
	};
}

static int get_keys(struct mount_help *m, uint64_t from)
{
	uint32_t count, most = HELP_NAMES_MAX;
	uint64_t next;
	int rc;

	if (from == m->c.first_fresh)
		most = KEYS_FIRST;
	rc = help_keys_ask(m, from, most, &count, &next);
	if (rc < 0)
		return rc;
	turn_lock(m->c.turn);
	/* If an example has no entry now, do not store that, because there may
	 * be an entry when the example is read again. */
	for (uint32_t i = 0; i < count; i++)
		if (m->answers[i].bytes)
			keep_key(m, m->asked[i], &m->answers[i]);
	m->answered = m->known < m->files ? next : UINT64_MAX;
	turn_unlock(m->c.turn);
	return 0;
}

/* Check the socket. If it is readable although no answer is due, the daemon has
 * ended. Returns 0 or -errno. */
static int see_daemon(struct mount_help *m)
{
	int rc = talk_wait_readable(m->talk.fd, 0);

	return rc > 0 ? -EPIPE : rc;
}

/* Do the thread's tasks until the loader closes, then return 0. Returns -errno
 * if the connection has failed. */
static int serve(struct mount_help *m)
{
	struct help_now now;
	int rc = 0;

	while (rc >= 0) {
		now.report.untold = (struct help_direct){0, 0};
		switch (help_wait_for_work(m, &now)) {
		case WORK_KEYS:
			rc = get_keys(m, now.answered);
			break;
		case WORK_BEGIN:
			rc = help_plan_begin(m, &now.report);
			break;
		case WORK_PLAN:
			rc = help_plan_add(m, now.plan_end);
			break;
		case WORK_REPORT:
			rc = help_plan_report(m, &now.report);
			break;
		case WORK_TELL:
			rc = help_tell(m, &now.report.untold);
			break;
		case WORK_END:
			help_tell_last(m, &now.report.untold);
			return 0;
		case WORK_NONE:
			rc = see_daemon(m);
			break;
		}
	}
	help_not_told(m, &now.report.untold);
	return rc;
}

/* -- The thread ------------------------------------------------------------ */

/* Store the socket, so that closing can shut it down. Returns -ECANCELED if
 * closing has begun. */
static int say_socket(struct mount_help *m)
{
	struct help_run run;

	TURN_LOOK_SCOPE(m->c.turn);
	run = help_look(m);
	m->socket = m->talk.fd;
	m->schedule = *run.schedule;
	return run.closing ? -ECANCELED : 0;
}

/* Find the mount on which all datasets are, and where they are there. Returns
 * 0, -ENODATA if there is no such mount, or another -errno. */
static int find_datasets(struct mount_help *m, char socket[PATH_MAX])
{
	uint32_t n = dataset_joined_count(m->c.dataset);
	char below[PATH_MAX], path[PATH_MAX];

	for (uint32_t i = 0; i < n; i++) {
		struct dataset_joined one;
		int rc;

		dataset_joined(m->c.dataset, i, &one);
		rc = help_find(one.dir, path, &m->owner, below);
		if (rc < 0)
			return rc;
		if (i > 0 && strcmp(path, socket) != 0)
			return -ENODATA; /* they are on different mounts */
		memcpy(socket, path, sizeof(path));
		free(m->below[i]);
		m->below[i] = strdup(below);
		if (!m->below[i])
			return -ENOMEM;
	}
	return 0;
}

static int meet(struct mount_help *m)
{
	char path[PATH_MAX];
	int rc = find_datasets(m, path);

	if (rc == 0)
		rc = talk_open(&m->talk, path, HELP_LINE_MAX_BYTES);
	if (rc < 0)
		return rc;
	rc = talk_check_owner(&m->talk, m->owner);
	if (rc == 0)
		return say_socket(m);
	talk_close(&m->talk);
	return rc;
}

/* Open the mount's tiers. A tier that this user may not open is skipped,
 * because other tiers may have entries. */
static int open_tiers(struct mount_help *m)
{
	static const char request[] = "{\"cmd\":\"status\"}\n";
	CLEANUP_FREE char(*dirs)[PATH_MAX] =
		calloc(ANSWER_TIERS_MAX, sizeof(*dirs));
	const char *line;
	size_t n;
	int rc;

	if (!dirs)
		return -ENOMEM;
	memcpy(m->request, request, sizeof(request) - 1);
	rc = help_ask(m, sizeof(request) - 1, &line, &n);
	if (rc == 0)
		rc = answer_tiers(line, n, dirs);
	for (int i = 0; i < rc; i++) {
		int fd = help_open_tier(dirs[i], m->owner);

		if (fd >= 0)
			m->tier_fds[m->tiers++] = fd;
	}
	return rc < 0 ? rc : 0;
}

/* Create the ring for reads from tiers. If there is no io_uring, use the
 * loader's own ring, whose threads can also wait for tiers. */
static struct uring *make_ring(struct mount_help *m)
{
	struct uring *ring;

	if (!m->tiers || uring_new(&ring, m->depth, 1) < 0)
		return NULL;
	if (!uring_pool(ring))
		return ring;
	/* cannot fail: the ring was never used */
	(void)uring_free(ring, NS_PER_S);
	return m->ours;
}

static void close_tiers(struct mount_help *m)
{
	while (m->tiers > 0)
		/* cannot lose data: nothing was written */
		(void)close(m->tier_fds[--m->tiers]);
}

/* Switch to ON. Returns false if closing has begun. */
static bool say_on(struct mount_help *m, struct uring *ring)
{
	bool on;

	turn_lock(m->c.turn);
	on = !help_look(m).closing;
	if (on) {
		m->ring = ring;
		m->state = HELP_ON;
	}
	turn_unlock(m->c.turn);
	return on;
}

static int go_on(struct mount_help *m)
{
	struct uring *ring = make_ring(m);

	if (!ring)
		close_tiers(m);
	if (say_on(m, ring))
		return 0;
	if (ring && ring != m->ours)
		/* cannot fail: the ring was never used */
		(void)uring_free(ring, NS_PER_S);
	return -ECANCELED;
}

/* Close the connection. From now on reads do not wait for the daemon. Returns
 * false if closing the loader has taken over the socket; in this case
 * help_stop() closes it. */
static bool hang_up(struct mount_help *m, enum help_state state)
{
	bool ours;

	turn_lock(m->c.turn);
	ours = m->socket >= 0;
	m->socket = -1;
	m->state = state;
	if (help_plan_begun(m))
		m->plan_state = PLAN_AGAIN;
	m->fetching = m->gated = false;
	turn_unlock(m->c.turn);
	if (ours)
		talk_close(&m->talk);
	return ours;
}

/* Sleep for this time. Returns false if closing has begun. */
static bool pause_for(struct mount_help *m, uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns;
	bool closing;

	turn_lock(m->c.turn);
	while (!(closing = help_look(m).closing) &&
		turn_wait_until(m->c.turn, TURN_HELP, until_ns))
		;
	turn_unlock(m->c.turn);
	return !closing;
}

/* May another attempt succeed? The address of the socket may still be that of
 * the daemon that has ended. */
static bool may_meet_next(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOENT || rc == -EAGAIN;
}

/* Wait for the next daemon, and continue with it. If the last daemon has ended
 * within a second after it was reached, there is a pause even before the first
 * attempt. */
static int meet_next(struct mount_help *m)
{
	uint64_t pause_ns =
		m->back_ns + NS_PER_S > clock_now_ns() ? BACK_MIN_NS : 0;
	int rc;

	do {
		if (!pause_for(m, pause_ns))
			return -ECANCELED;
		rc = meet(m);
		pause_ns = pause_ns ? 2 * pause_ns : BACK_MIN_NS;
		pause_ns = pause_ns < BACK_MAX_NS ? pause_ns : BACK_MAX_NS;
	} while (may_meet_next(rc));
	if (rc < 0)
		return rc;
	m->back_ns = clock_now_ns();
	turn_lock(m->c.turn);
	m->returns++;
	m->state = HELP_ON;
	if (m->plan_state == PLAN_REFUSED)
		m->plan_state = PLAN_NONE;
	m->gated = m->plan_state == PLAN_AGAIN;
	turn_unlock(m->c.turn);
	return 0;
}

static void end(struct mount_help *m)
{
	(void)hang_up(m, HELP_OFF);
	turn_lock(m->c.turn);
	m->thread_state = THREAD_ENDED;
	turn_mark(m->c.turn, TURN_CLOSER);
	turn_unlock(m->c.turn);
}

static void *help_thread(void *arg)
{
	struct mount_help *m = OBJECT(mount_help, arg);
	int rc = meet(m);

	if (rc == 0)
		rc = open_tiers(m);
	if (rc == 0)
		rc = go_on(m);
	while (rc == 0) {
		rc = serve(m);
		if (rc == 0)
			break;
		if (rc == -EPIPE && hang_up(m, HELP_AWAY))
			rc = meet_next(m);
	}
	end(m);
	return NULL;
}

/* -- Creation and end ------------------------------------------------------ */

static bool may_help(const struct help_config *c)
{
	struct example first;

	if (c->s->c.flags & REFRAIN_FLAG_NO_MOUNT_HELP ||
		dataset_shards(c->dataset) ||
		dataset_count(c->dataset) >=
			UINT32_MAX / dataset_parts(c->dataset) ||
		dataset_fs_type(c->dataset) != FUSE_SUPER_MAGIC)
		return false;
	dataset_example(c->dataset, 0, &first);
	return first.whole;
}

/* Allocate tables for as many keys as fit into an eighth of the free memory. */
static int new_tables(struct mount_help *m)
{
	uint64_t room = m->c.room_bytes / 8;

	if (room < TALK_BYTES + KEYS_FIRST * sizeof(*m->keys))
		return -ENOMEM;
	m->keys_count = (room - TALK_BYTES) / sizeof(*m->keys);
	if (m->keys_count > m->files)
		m->keys_count = m->files;
	m->keys = calloc(m->keys_count, sizeof(*m->keys));
	m->request = malloc(HELP_REQUEST_BYTES);
	m->asked = calloc(HELP_NAMES_MAX, sizeof(*m->asked));
	m->answers = calloc(HELP_NAMES_MAX, sizeof(*m->answers));
	if (!m->keys || !m->request || !m->asked || !m->answers)
		return -ENOMEM;
	m->charged = TALK_BYTES + m->keys_count * sizeof(*m->keys);
	return 0;
}

/* Returns the number of examples of all ranks in a pass. */
static uint64_t pass_examples(const struct help_config *config)
{
	uint64_t subset = config->s->c.subset;

	return subset ? subset : dataset_count(config->dataset);
}

struct mount_help *help_new(const struct help_config *config)
{
	uint32_t world = config->s->c.world;
	struct mount_help *m;

	if (!may_help(config))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	MAGIC_BEGIN(m, mount_help);
	m->c = *config;
	m->no_plan = config->s->c.service != NULL;
	m->parts = dataset_parts(config->dataset);
	m->files = dataset_count(config->dataset) * m->parts;
	m->answered = config->first_fresh;
	m->pass_fresh = (pass_examples(config) + world - 1) / world;
	m->admit_planned =
		(config->s->c.flags & REFRAIN_FLAG_ADMIT_PLANNED) != 0;
	/* A plan that closes the cache to others begins before a miss. */
	m->in_row = m->admit_planned ? 0 : m->pass_fresh * m->parts;
	m->talk.fd = m->socket = -1;
	if (new_tables(m) == 0)
		return m;
	help_free(m);
	return NULL;
}

uint64_t help_memory_bytes(const struct mount_help *m)
{
	return m ? m->charged : 0;
}

void help_start(struct mount_help *m, struct uring *ring, unsigned depth)
{
	if (!m)
		return;
	m->ours = ring;
	m->depth = depth;
	m->state = HELP_STARTING;
	m->thread_state = THREAD_WORKS;
	if (pthread_create(&m->thread, NULL, help_thread, m) == 0)
		return;
	m->thread_state = THREAD_NONE;
	m->state = HELP_OFF;
}

static void wait_for_end(struct mount_help *m, uint64_t until_ns)
{
	while (m->thread_state != THREAD_ENDED)
		if (!turn_wait_until(m->c.turn, TURN_CLOSER, until_ns))
			break;
}

/* Interrupt the thread by shutting down its socket. From now on the thread must
 * not close the socket, because another file could get its number. The lock is
 * released during the shutdown. */
static void shut_socket(struct mount_help *m)
{
	int fd = m->socket;

	if (fd < 0)
		return;
	m->socket = -1;
	turn_unlock(m->c.turn);
	/* Fails if the daemon has closed the connection */
	(void)shutdown(fd, SHUT_RDWR);
	turn_lock(m->c.turn);
}

/* Stop the thread. If the daemon answers, the thread first sends its last
 * messages; otherwise it is interrupted. */
bool help_stop(struct mount_help *m, uint64_t until_ns)
{
	uint64_t soon_ns = clock_now_ns() + LAST_WORD_NS;
	bool ended;

	if (!m)
		return true;
	turn_lock(m->c.turn);
	if (m->thread_state == THREAD_NONE) {
		turn_unlock(m->c.turn);
		return true;
	}
	turn_mark(m->c.turn, TURN_HELP);
	wait_for_end(m, soon_ns < until_ns ? soon_ns : until_ns);
	shut_socket(m);
	wait_for_end(m, until_ns);
	ended = m->thread_state == THREAD_ENDED;
	turn_unlock(m->c.turn);
	if (!ended) {
		pthread_detach(m->thread);
		return false;
	}
	pthread_join(m->thread, NULL);
	talk_close(&m->talk);
	return true;
}

void help_free(struct mount_help *m)
{
	if (!m)
		return;
	close_tiers(m);
	free(m->keys);
	free(m->request);
	free(m->asked);
	free(m->answers);
	for (unsigned i = 0; i < DATASETS_MAX; i++)
		free(m->below[i]);
	MAGIC_END(m);
	free(m);
}

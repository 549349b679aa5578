/* SPDX-License-Identifier: MIT */
/* The session of a mount: one page of shared memory. It is written at the
 * handshake with the kernel. After that, only its last fields change. Called by
 * the workers and the main thread. */
#include "mount/fs/fs_session_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

#define SESSION_MAGIC "refrsess"
#define SESSION_VERSION 1u
#define SESSION_BYTES 4096u
#define SESSION_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

/* Values of `end`: an enum session_end, or END_CRASHED + the number of a
 * signal. */
#define END_CRASHED SESSION_UPGRADED
#define END_SIGNAL_MAX 64u

#define SESSION_CRASHES 16u
#define SESSION_STRIKES 2u

struct session_crash {
	_Atomic uint64_t unique, node;
	_Atomic uint32_t opcode, count;
};

/* The numbers have the byte order of the machine, because a session never
 * leaves the machine. */
struct session_page {
	char magic[8];
	uint32_t version, bytes;
	struct hash128 id, dataset;
	struct session_agreed agreed;
	uint32_t init_bytes; /* 0: there was no handshake with the kernel yet */
	unsigned char init[SESSION_INIT_MAX];
	uint64_t hash; /* XXH3-64 of the fields above, seed: version */
	/* Any process may change the fields below. A wrong value does no
	 * harm. */
	_Atomic uint32_t recoveries, end;
	/* The request of the last crash, and those of earlier crashes. */
	struct session_crash crash, before[SESSION_CRASHES];
	uint64_t changes_hash; /* XXH3-64 of the text, seed: its length */
	uint32_t changes_bytes;
	char changes[SESSION_CHANGES_MAX];
};

_Static_assert(sizeof(struct session_page) <= SESSION_BYTES, "one page");

struct session {
	/* shared memory, which the next process gets, too */
	struct session_page *page;
	int fd, connection; /* set once */
	/* Set once: a request has caused SESSION_STRIKES crashes */
	bool crashed;
	/* The handshake is done. Set before other threads exist */
	bool complete;
	char last_end[64]; /* set once */
	bool on_purpose;   /* set once */
};

static uint64_t page_hash(const struct session_page *p)
{
	return hash64(p, offsetof(struct session_page, hash), p->version);
}

static int session_map(struct session *s)
{
	void *map = mmap(NULL, SESSION_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, s->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	s->page = map;
	return 0;
}

static struct session *session_alloc(int fd)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->connection = -1;
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	if (s->page)
		(void)munmap(s->page, SESSION_BYTES);
	if (s->fd >= 0)
		(void)close(s->fd);
	free(s);
}

static int session_make_file(void)
{
	int fd = memfd_create(
		"refrain-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, SESSION_BYTES) < 0 ||
		fcntl(fd, F_ADD_SEALS, SESSION_SEALS) < 0) {
		(void)close(fd);
		return -EIO;
	}
	return fd;
}

/* Returns a random name. The upper half of its first word is the instance. */
static struct hash128 new_id(void)
{
	struct hash128 id;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (struct hash128){clock_now_ns() << 32, (uint64_t)getpid()};
	if (id.hi >> 32 == 0)
		id.hi |= UINT64_C(1) << 32;
	id.lo |= 1;
	return id;
}

struct session *session_new(struct hash128 dataset)
{
	int fd = session_make_file();
	struct session *s = session_alloc(fd);
	struct session_page *p;

	if (!s || fd < 0 || session_map(s) < 0) {
		if (!s && fd >= 0)
			(void)close(fd);
		session_free(s);
		return NULL;
	}
	p = s->page;
	memcpy(p->magic, SESSION_MAGIC, sizeof(p->magic));
	p->version = SESSION_VERSION;
	p->bytes = SESSION_BYTES;
	p->id = new_id();
	p->dataset = dataset;
	return s;
}

/* -- Continuing a session -------------------------------------------------- */

static bool session_file_valid(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_size == SESSION_BYTES &&
		fcntl(fd, F_GET_SEALS) == SESSION_SEALS;
}

static int page_check(
	const struct session_page *p, struct hash128 dataset, struct error *err)
{
	if (memcmp(p->magic, SESSION_MAGIC, sizeof(p->magic)) != 0 ||
		p->bytes != SESSION_BYTES)
		return error_set(err, -EBADMSG, "its session is damaged");
	if (p->version != SESSION_VERSION)
		return error_set(err, -EBADMSG,
			"its session has version %u, and this program reads %u",
			p->version, SESSION_VERSION);
	if (p->init_bytes == 0)
		return error_set(err, -EBADMSG,
			"it ended before the kernel had greeted it");
	if (p->hash != page_hash(p) || p->init_bytes > SESSION_INIT_MAX)
		return error_set(err, -EBADMSG, "its session is damaged");
	if (p->dataset.hi != dataset.hi || p->dataset.lo != dataset.lo)
		return error_set(err, -EBADMSG, "it has another source");
	return 0;
}

/* Do both stand for one request? READs of the same node do, because a reader
 * repeats a READ that has failed. */
static bool same_request(const struct session_crash *c, uint64_t unique,
	uint64_t node, uint32_t opcode)
{
	if (c->count == 0 || c->opcode != opcode)
		return false;
	return opcode == FUSE_READ ? c->node == node : c->unique == unique;
}

/* Add the last crash to the earlier ones. If all entries are in use, it
 * replaces the last entry. */
static void count_crash(struct session_page *p)
{
	struct session_crash *c = p->before;
	unsigned i = 0;

	while (i < SESSION_CRASHES - 1 && c[i].count != 0 &&
		!same_request(
			&c[i], p->crash.unique, p->crash.node, p->crash.opcode))
		i++;
	if (!same_request(
		    &c[i], p->crash.unique, p->crash.node, p->crash.opcode))
		c[i].count = 0;
	c[i].unique = p->crash.unique;
	c[i].node = p->crash.node;
	c[i].opcode = p->crash.opcode;
	c[i].count++;
}

/* Count the crash of the previous process. After an upgrade or a restart,
 * forget all crashes, because a new program may not have the fault. */
static void take_crashes(struct session *s, bool maybe_new)
{
	struct session_page *p = s->page;

	if (maybe_new)
		for (unsigned i = 0; i < SESSION_CRASHES; i++)
			p->before[i].count = 0;
	else if (p->crash.unique != 0)
		count_crash(p);
	p->crash.unique = 0;
	for (unsigned i = 0; i < SESSION_CRASHES; i++)
		s->crashed |= p->before[i].count >= SESSION_STRIKES;
}

static void take_last_end(struct session *s)
{
	uint32_t end = atomic_exchange(&s->page->end, SESSION_KILLED);
	const char *text = "the daemon was killed";

	s->on_purpose = end == SESSION_UPGRADED || end == SESSION_LEFT;
	if (end == SESSION_UPGRADED)
		text = "upgrade";
	else if (end == SESSION_LEFT)
		text = "restart";
	if (end > END_CRASHED && end <= END_CRASHED + END_SIGNAL_MAX)
		(void)snprintf(s->last_end, sizeof(s->last_end),
			"the daemon crashed with signal %u",
			(unsigned)(end - END_CRASHED));
	else
		(void)snprintf(s->last_end, sizeof(s->last_end), "%s", text);
	take_crashes(s, s->on_purpose);
	(void)atomic_fetch_add(&s->page->recoveries, 1);
}

int session_open(struct session **out, const struct session_fds *fds,
	struct hash128 dataset, struct error *err)
{
	struct session *s = session_alloc(fds->session);
	int rc = 0;

	if (!s)
		return error_set(err, -ENOMEM, "cannot take over: %m");
	if (!session_file_valid(s->fd) || session_map(s) < 0)
		rc = error_set(err, -EBADMSG, "its session is damaged");
	if (rc == 0)
		rc = page_check(s->page, dataset, err);
	if (rc < 0) {
		session_free(s);
		return rc;
	}
	s->connection = fds->fuse;
	s->complete = true;
	take_last_end(s);
	*out = s;
	return 0;
}

int session_check(const struct session_fds *fds, struct hash128 dataset,
	struct error *err)
{
	struct session s = {.fd = fds->session};
	int rc;

	if (!session_file_valid(s.fd) || session_map(&s) < 0)
		return error_set(err, -EBADMSG, "its session is damaged");
	rc = page_check(s.page, dataset, err);
	(void)munmap(s.page, SESSION_BYTES);
	return rc;
}

/* -- Changes of options ---------------------------------------------------- */

bool session_keep_changes(struct session *s, const char *text, size_t bytes)
{
	struct session_page *p = s->page;

	if (bytes > SESSION_CHANGES_MAX)
		return false;
	memcpy(p->changes, text, bytes);
	p->changes_bytes = (uint32_t)bytes;
	p->changes_hash = hash64(p->changes, bytes, bytes);
	return true;
}

size_t session_changes(int fd, char *text, size_t size)
{
	struct session_page page;
	size_t bytes;

	if (!session_file_valid(fd) ||
		pread(fd, &page, sizeof(page), 0) != sizeof(page) ||
		memcmp(page.magic, SESSION_MAGIC, sizeof(page.magic)) != 0 ||
		page.version != SESSION_VERSION)
		return 0;
	bytes = page.changes_bytes;
	if (bytes == 0 || bytes > SESSION_CHANGES_MAX || bytes > size ||
		page.changes_hash != hash64(page.changes, bytes, bytes) ||
		page.changes[bytes - 1] != '\0')
		return 0;
	memcpy(text, page.changes, bytes);
	return bytes;
}

/* -- The first request ---------------------------------------------------- */

void session_keep_init(struct session *s, const void *request, size_t bytes)
{
	if (!s || s->complete || bytes > SESSION_INIT_MAX)
		return;
	memcpy(s->page->init, request, bytes);
	s->page->init_bytes = (uint32_t)bytes;
}

const void *session_init(const struct session *s, size_t *bytes)
{
	*bytes = s->page->init_bytes;
	return s->page->init;
}

void session_keep_agreed(struct session *s, const struct session_agreed *agreed)
{
	s->page->agreed = *agreed;
	s->page->hash = page_hash(s->page);
	s->complete = true;
}

const struct session_agreed *session_agreed(const struct session *s)
{
	return &s->page->agreed;
}

/* -- Queries --------------------------------------------------------------- */

struct hash128 session_id(const struct session *s)
{
	return s->page->id;
}

uint32_t session_instance(const struct session *s)
{
	return (uint32_t)(s->page->id.hi >> 32);
}

int session_fd(const struct session *s)
{
	return s->fd;
}

int session_connection(const struct session *s)
{
	return s->connection;
}

unsigned session_recoveries(const struct session *s)
{
	return atomic_load(&s->page->recoveries);
}

bool session_was_replaced(const struct session *s)
{
	return s->on_purpose;
}

const char *session_last_end(const struct session *s)
{
	return s->last_end;
}

void session_note_end(struct session *s, enum session_end end)
{
	atomic_store(&s->page->end, (uint32_t)end);
}

/* -- Crashes --------------------------------------------------------------- */

void session_note_crash(struct session *s, int sig, uint64_t unique,
	uint64_t node, uint32_t opcode)
{
	struct session_page *p = s->page;

	p->crash.node = node;
	p->crash.opcode = opcode;
	p->crash.unique = unique;
	atomic_store(&p->end, END_CRASHED + (uint32_t)sig);
}

bool session_struck(const struct session *s, uint64_t unique, uint64_t node,
	uint32_t opcode)
{
	for (unsigned i = 0; s->crashed && i < SESSION_CRASHES; i++) {
		const struct session_crash *c = &s->page->before[i];

		if (c->count >= SESSION_STRIKES &&
			same_request(c, unique, node, opcode))
			return true;
	}
	return false;
}

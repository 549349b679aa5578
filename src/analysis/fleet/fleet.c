/* SPDX-License-Identifier: MIT */
/*
 * Asks all mounts at once. Each mount has a state:
 *
 *	AWAY	 nothing was asked	-> FINDING or LOST, mount_begin()
 *	FINDING	 a child searches for	-> IDLE or LOST, mount_found()
 *		 the control socket
 *	IDLE	 connected		-> ASKED or AWAY, mount_ask()
 *	ASKED	 the daemon has to	-> IDLE or AWAY, mount_answered()
 *		 send its status
 *	LOST	 it cannot be asked	-> AWAY, in the next look
 *
 * A mount that is still FINDING or ASKED at the end of a look counts as hung
 * until its answer comes. Owned by one thread.
 */
#include "analysis/fleet/fleet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analysis/fleet/client.h"
#include "analysis/fleet/fleet_find_impl.h"
#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/mountinfo.h"

enum fleet_phase { AWAY, FINDING, IDLE, ASKED, LOST };

struct fleet_entry {
	char *mountpoint;
	unsigned major, minor;
	bool present; /* the kernel's list contains it in this look */
	/* it was connected in this look, and is not connected again */
	bool tried;
	enum fleet_phase phase;
	struct fleet_find find;	   /* used while FINDING */
	struct ctl_client *client; /* used while IDLE and ASKED */
	uint64_t asked_ns;	   /* time at which FINDING or ASKED began */
	bool overdue; /* an earlier look has waited for its answer already */
	bool fresh;   /* it has answered in this look */
	json_t *status, *before;
	uint64_t status_ns, before_ns;
	enum fleet_state state;
	struct error why;
};

struct fleet {
	struct fleet_entry **entry;
	size_t n, room;
	struct pollfd *poll; /* one element for each entry */
	size_t poll_room;
	/* Children for mounts that are gone. They hang, and are reaped when
	 * they end */
	pid_t *child;
	size_t nchildren, child_room;
};

const char *fleet_state_name(enum fleet_state state)
{
	static const char *const names[] = {
		[FLEET_UP] = "up",
		[FLEET_HUNG] = "hung",
		[FLEET_DEAD] = "dead",
		[FLEET_REFUSED] = "refused",
	};

	return names[state];
}

int fleet_new(struct fleet **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

/* -- The states of a mount ------------------------------------------------- */

static void mount_drop(struct fleet_entry *e)
{
	if (e->phase == FINDING)
		probe_end(&e->find.probe);
	ctl_disconnect(e->client);
	e->client = NULL;
	e->phase = AWAY;
	e->overdue = false;
}

static void mount_lost(struct fleet_entry *e, int rc)
{
	mount_drop(e);
	e->phase = LOST;
	e->state = rc == -ENOTCONN || rc == -ECONNREFUSED ? FLEET_DEAD
							  : FLEET_REFUSED;
}

static void mount_begin(struct fleet_entry *e)
{
	int rc;

	e->tried = true;
	e->asked_ns = clock_now_ns();
	rc = fleet_find_start(&e->find);
	if (rc == 0)
		e->phase = FINDING;
	else
		mount_lost(e, error_set(&e->why, rc, "cannot fork: %m"));
}

static void mount_ask(struct fleet_entry *e)
{
	int rc = ctl_client_send(
		e->client, json_pack("{s:s}", "cmd", "status"), &e->why);

	if (rc < 0) {
		mount_drop(e);
		return;
	}
	e->asked_ns = clock_now_ns();
	e->phase = ASKED;
}

static void mount_found(struct fleet_entry *e)
{
	char path[PATH_MAX];
	int rc = fleet_find_end(&e->find, path);

	e->phase = AWAY;
	rc = ctl_connect_found(
		&e->client, e->mountpoint, e->find.uid, rc, path, &e->why);
	if (rc < 0) {
		mount_lost(e, rc);
		return;
	}
	e->phase = IDLE;
	e->overdue = false;
	mount_ask(e);
}

/* Store a status, and keep the one before it, because a rate needs two of them.
 */
static void mount_take(struct fleet_entry *e, json_t *status)
{
	json_decref(e->before);
	e->before = e->status;
	e->before_ns = e->status_ns;
	e->status = status;
	e->status_ns = clock_now_ns();
	e->state = FLEET_UP;
	e->why.msg[0] = '\0';
	e->fresh = true;
}

/* Receive the answer of a mount. If its request was sent in an earlier look,
 * the status is out of date, and the mount is asked again. */
static void mount_answered(struct fleet_entry *e)
{
	json_t *reply = NULL, *status;
	int rc = ctl_client_receive(e->client, 0, &reply, &e->why);

	if (rc == -ETIMEDOUT) /* the line is not complete yet */
		return;
	if (rc < 0) {
		/* the daemon has ended; another one may have taken its place */
		mount_drop(e);
		return;
	}
	e->phase = IDLE;
	status = json_object_get(reply, "status");
	if (e->overdue) {
		e->overdue = false;
		mount_ask(e);
	} else if (json_is_object(status)) {
		mount_take(e, json_incref(status));
	} else {
		mount_lost(e,
			error_set(&e->why, -EBADMSG,
				"the daemon answered without a status"));
	}
	json_decref(reply);
}

/* Take steps as long as they need no waiting. */
static void mount_step(struct fleet_entry *e)
{
	if (e->phase == AWAY && !e->tried)
		mount_begin(e);
	else if (e->phase == AWAY)
		/* it has ended a second time in this look */
		mount_lost(e, -ENOTCONN);
}

static bool mount_waits(const struct fleet_entry *e)
{
	return e->phase == FINDING || e->phase == ASKED;
}

/* -- The list of mounts ---------------------------------------------------- */

static void reap_children(struct fleet *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nchildren; i++)
		if (waitpid(f->child[i], NULL, WNOHANG) == 0)
			f->child[n++] = f->child[i];
	f->nchildren = n;
}

static void entry_free(struct fleet_entry *e)
{
	mount_drop(e);
	json_decref(e->status);
	json_decref(e->before);
	free(e->mountpoint);
	free(e);
}

/* Forget a mount that is gone. */
static void entry_drop(struct fleet *f, struct fleet_entry *e)
{
	pid_t child = e->phase == FINDING ? e->find.probe.pid : 0;

	entry_free(e);
	if (child > 0 && waitpid(child, NULL, WNOHANG) == 0 &&
		ARRAY_ROOM(f->child, f->nchildren, &f->child_room) == 0)
		f->child[f->nchildren++] = child;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		entry_free(f->entry[i]);
	free(f->entry);
	free(f->poll);
	free(f->child);
	free(f);
}

static void entry_owner(const struct mountinfo_entry *m, uid_t *uid, gid_t *gid)
{
	if (mountinfo_owner(m, uid, gid) < 0) {
		*uid = 0; /* then only a daemon of root is accepted */
		*gid = 0;
	}
}

static int entry_add(struct fleet *f, const struct mountinfo_entry *m)
{
	struct fleet_entry *e;

	if (ARRAY_ROOM(f->entry, f->n, &f->room) < 0 ||
		ARRAY_ROOM(f->poll, f->n, &f->poll_room) < 0)
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->mountpoint = strdup(m->path);
	if (!e->mountpoint) {
		free(e);
		return -ENOMEM;
	}
	entry_owner(m, &e->find.uid, &e->find.gid);
	e->find.mountpoint = e->mountpoint;
	e->major = m->major;
	e->minor = m->minor;
	e->present = true;
	f->entry[f->n++] = e;
	return 0;
}

/* Note one line of the mount table. A file system that is mounted at two paths
 * counts once; a later mount at the same path hides the earlier one. Compare
 * paths and users, too, because the kernel reuses the number of a mount that is
 * gone. */
static int entry_note(struct fleet *f, const struct mountinfo_entry *m)
{
	bool refrain = strcmp(m->type, MOUNTINFO_REFRAIN) == 0 &&
		strcmp(m->root, "/") == 0;
	uid_t uid;
	gid_t gid;
	bool known = false;

	entry_owner(m, &uid, &gid);
	for (size_t i = 0; i < f->n; i++) {
		struct fleet_entry *e = f->entry[i];
		bool here = strcmp(e->mountpoint, m->path) == 0;
		bool same = refrain && e->major == m->major &&
			e->minor == m->minor && e->find.uid == uid &&
			e->find.gid == gid;

		if (same && (here || e->present)) {
			e->present = true;
			known = true;
		} else if (here) {
			e->present = false;
		}
	}
	return known || !refrain ? 0 : entry_add(f, m);
}

static void drop_absent(struct fleet *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (f->entry[i]->present)
			f->entry[n++] = f->entry[i];
		else
			entry_drop(f, f->entry[i]);
	}
	f->n = n;
}

static int fleet_list(struct fleet *f)
{
	struct mountinfo_entry m;
	struct mountinfo list;
	int rc = mountinfo_open(&list, 0);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < f->n; i++)
		f->entry[i]->present = false;
	while (rc == 0 && mountinfo_next(&list, &m))
		rc = entry_note(f, &m);
	mountinfo_close(&list);
	drop_absent(f);
	return rc;
}

/* -- A look ---------------------------------------------------------------- */

static void begin_look(struct fleet_entry *e)
{
	e->fresh = e->tried = false;
	if (e->phase == LOST)
		e->phase = AWAY;
	if (e->phase == IDLE)
		mount_ask(e);
	mount_step(e);
}

/* Is there a mount whose answer has not come? Fills in the poll() table for all
 * mounts. */
static bool fleet_prepare(struct fleet *f)
{
	bool waits = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_entry *e = f->entry[i];
		int fd = -1;

		if (e->phase == FINDING)
			fd = e->find.probe.fd;
		else if (e->phase == ASKED)
			fd = ctl_client_fd(e->client);
		f->poll[i] = (struct pollfd){.fd = fd, .events = POLLIN};
		waits |= mount_waits(e) && !e->overdue;
	}
	return waits;
}

static void fleet_handle(struct fleet *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct fleet_entry *e = f->entry[i];

		if (f->poll[i].revents == 0)
			continue;
		if (e->phase == FINDING)
			mount_found(e);
		else
			mount_answered(e);
		mount_step(e);
	}
}

static void end_look(struct fleet_entry *e)
{
	if (!mount_waits(e) || e->fresh)
		return;
	/* Search for the process of the daemon only once. */
	if (!e->overdue)
		(void)ctl_says_nothing(
			e->client, e->mountpoint, e->find.uid, &e->why);
	e->overdue = true;
	e->state = FLEET_HUNG;
}

int fleet_look(struct fleet *f, unsigned timeout_ms, struct error *err)
{
	uint64_t now, until = clock_now_ns() + timeout_ms * NS_PER_MS;
	int n, rc = fleet_list(f);
	bool waits;

	if (rc < 0)
		return error_set(err, rc, "cannot list the mounts: %m");
	reap_children(f);
	for (size_t i = 0; i < f->n; i++)
		begin_look(f->entry[i]);
	do {
		waits = fleet_prepare(f);
		now = clock_now_ns();
		n = poll(f->poll, f->n,
			waits && now < until
				? (int)((until - now) / NS_PER_MS) + 1
				: 0);
		if (n > 0)
			fleet_handle(f);
		/* Check the time, too, because a mount may send without end. */
	} while (now < until && (n > 0 || (n < 0 && errno == EINTR && waits)));
	for (size_t i = 0; i < f->n; i++)
		end_look(f->entry[i]);
	return 0;
}

size_t fleet_count(const struct fleet *f)
{
	return f->n;
}

struct fleet_mount fleet_get(const struct fleet *f, size_t i)
{
	const struct fleet_entry *e = f->entry[i];
	struct fleet_mount m = {
		.mountpoint = e->mountpoint,
		.state = e->state,
		.why = e->why.msg,
	};

	if (e->state == FLEET_HUNG)
		m.silent_ns = clock_now_ns() - e->asked_ns;
	if (e->state != FLEET_UP)
		return m;
	m.status = e->status;
	m.status_ns = e->status_ns;
	m.before = e->before;
	m.elapsed_ns = e->before ? e->status_ns - e->before_ns : 0;
	return m;
}

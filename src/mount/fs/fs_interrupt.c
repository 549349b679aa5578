/* SPDX-License-Identifier: MIT */
/*
 * Handles processes that are killed while their requests wait for an origin.
 * The kernel waits for the answer to a request even if the process was killed.
 * Therefore the request of a killed process is answered with EINTR at once, and
 * the later answer of the origin is dropped. Other signals are ignored, because
 * programs do not expect the read of a file to be interrupted.
 *
 * One atomic exchange decides which thread answers a request. libfuse usually
 * keeps the request alive while it calls on_interrupt(), which may then answer.
 * But while fuse_req_interrupt_func() sets the function, libfuse may call
 * on_interrupt() without keeping the request alive; then on_interrupt() must
 * not answer.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Is SIGKILL pending? The kernel also sets it for other fatal signals. Returns
 * false if this is not known: the process may be outside our PID namespace, so
 * that its number is 0, or /proc may hide it. */
static bool is_dying(pid_t pid)
{
	unsigned long long pending, kill_bit = 1ULL << (SIGKILL - 1);
	char path[64], line[256];
	bool dying = false;
	FILE *f;

	if (pid <= 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT && kill(pid, 0) < 0 && errno == ESRCH;
	while (!dying && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigPnd: %llx", &pending) == 1 ||
			sscanf(line, "ShdPnd: %llx", &pending) == 1)
			dying = pending & kill_bit;
	(void)fclose(f);
	return dying;
}

static void on_interrupt(fuse_req_t req, void *data)
{
	struct parked *p = OBJECT(parked, data);

	if (!atomic_load(&p->armed) || !is_dying(fuse_req_ctx(req)->pid))
		return;
	if (!atomic_exchange(&p->answered, true))
		/* The answer frees p */
		(void)fuse_reply_err(req, EINTR);
}

void parked_init(struct parked *p, fuse_req_t req)
{
	MAGIC_BEGIN(p, parked);
	p->req = req;
	atomic_init(&p->answered, false);
	atomic_init(&p->armed, false);
	fuse_req_interrupt_func(req, on_interrupt, p);
	atomic_store(&p->armed, true);
}

bool parked_claim(struct parked *p)
{
	if (atomic_exchange(&p->answered, true))
		return false;
	/* This waits for a running call of on_interrupt(). */
	fuse_req_interrupt_func(p->req, NULL, NULL);
	return true;
}

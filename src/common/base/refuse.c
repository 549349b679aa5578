/* SPDX-License-Identifier: MIT */
/* Refuses requests of the kernel; see refuse.h. No state. */
#include "common/base/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/feature.h"

/* The kernel refuses a read(2) of less than the longest request. */
#define REQUEST_MAX (((size_t)1 << 20) + 4096)

#define QUIET_MS 1000
#define REFUSE_NS (10 * NS_PER_S)

/* The headers of older kernels do not have this. */
#define NOTIFY_RESEND 7

static void refuse_one(int connection, uint64_t unique)
{
	const struct fuse_out_header answer = {
		.len = sizeof(answer), .error = -ENOTCONN, .unique = unique};

	/* This write fails if the request has been answered. */
	(void)!write(connection, &answer, sizeof(answer));
}

/* Have the kernel send again the requests that were read but not answered.
 * Older kernels cannot do this, and refuse. */
static void refuse_resent(int connection)
{
	const struct fuse_out_header ask = {
		.len = sizeof(ask), .error = NOTIFY_RESEND};

	if (feature_enabled("resend"))
		(void)!write(connection, &ask, sizeof(ask));
}

static void refuse_recorded(int connection, int requests)
{
	struct fuse_in_header head;

	for (unsigned i = 0; requests >= 0 && i < REQUEST_SLOTS; i++)
		if (pread(requests, &head, sizeof(head),
			    (off_t)i * REQUEST_SLOT_BYTES) == sizeof(head) &&
			head.unique != 0)
			refuse_one(connection, head.unique);
}

/* Returns false if no request has come for a while, or the connection has
 * ended. */
static bool refuse_next(int connection, void *buffer)
{
	struct pollfd p = {.fd = connection, .events = POLLIN};
	const struct fuse_in_header *head = buffer;
	ssize_t n;

	if (poll(&p, 1, QUIET_MS) != 1 || (p.revents & POLLERR))
		return false;
	n = read(connection, buffer, REQUEST_MAX);
	/* No program waits for an answer to these. */
	if (n >= (ssize_t)sizeof(*head) && head->opcode != FUSE_FORGET &&
		head->opcode != FUSE_BATCH_FORGET &&
		head->opcode != FUSE_INTERRUPT)
		refuse_one(connection, head->unique);
	return n >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOENT;
}

void connection_refuse(int connection, int requests)
{
	uint64_t until_ns = clock_now_ns() + REFUSE_NS;
	void *buffer = malloc(REQUEST_MAX);
	int flags = fcntl(connection, F_GETFL);

	if (buffer && flags >= 0 &&
		fcntl(connection, F_SETFL, flags | O_NONBLOCK) == 0) {
		refuse_resent(connection);
		refuse_recorded(connection, requests);
		while (clock_now_ns() < until_ns &&
			refuse_next(connection, buffer))
			;
	}
	free(buffer);
}

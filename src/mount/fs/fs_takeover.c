/* SPDX-License-Identifier: MIT */
/*
 * Continues with the connection of a daemon that has died or was replaced.
 * libfuse gets the kernel's first request again, from the session, so that the
 * handshake has the same result as before. The kernel drops the second answer.
 * Where it can, the kernel then sends again the requests that the previous
 * daemon had read. The previous daemon must have been reaped before that,
 * because until then one of its threads could still take a request.
 */
#include "mount/fs/fs_impl.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/feature.h"
#include "common/base/unmount.h"

/* Headers of older kernels lack these constants. */
#define INIT_EXT (1u << 30)
#define INIT2_HAS_RESEND (1u << 7)
#define NOTIFY_RESEND 7

bool takeover_can_resend(const struct session *s)
{
	struct {
		struct fuse_in_header head;
		uint32_t major, minor, max_readahead, flags, flags2;
	} init;
	size_t bytes;
	const void *at = session_init(s, &bytes);

	if (bytes < sizeof(init))
		return false;
	memcpy(&init, at, sizeof(init)); /* the request may not be aligned */
	return (init.flags & INIT_EXT) && (init.flags2 & INIT2_HAS_RESEND) &&
		feature_enabled("resend");
}

int takeover_open(struct fs *fs, struct fuse_session *se)
{
	char path[32];
	int fd = session_connection(fs->config.session);

	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	return fuse_session_mount(se, path) == 0 ? 0 : -EPERM;
}

/* Give libfuse the first request again. The kernel ignores the answer, because
 * no such request is open. */
void takeover_greet(struct fs *fs)
{
	struct fuse_buf buf = {.mem = NULL};

	/* Libfuse does not change the buffer. */
	buf.mem =
		(void *)(uintptr_t)session_init(fs->config.session, &buf.size);
	fuse_session_process_buf(fs->se, &buf);
}

int takeover_resend(struct fs *fs)
{
	const struct fuse_out_header ask = {
		.len = sizeof(ask), .error = NOTIFY_RESEND};

	if (write(fuse_session_fd(fs->se), &ask, sizeof(ask)) != sizeof(ask))
		return -errno;
	return 0;
}

/* Unmount. Another process has mounted, so libfuse knows only the
 * descriptor. */
void takeover_unmount(struct fs *fs)
{
	struct pollfd p = {.fd = fuse_session_fd(fs->se)};
	struct error ignored;

	if (fs_given_connection(fs->config.mountpoint) >= 0)
		return;
	/* The mount was unmounted already, so another file system may be
	 * mounted at the path now. */
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLERR))
		return;
	(void)unmount(fs->config.mountpoint, true, &ignored);
}

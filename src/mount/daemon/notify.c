/* SPDX-License-Identifier: MIT */
/*
 * Tells the process that started the daemon its state, and passes descriptors
 * to it, by the protocol of sd_notify(3). Any thread.
 */
#include "mount/daemon/mount_impl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/send_fds.h"

/* sd_notify(3) sends one datagram to the socket that NOTIFY_SOCKET names. */
void notify_holder(const char *state, int passed)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	CLEANUP_FD int fd = -1;
	size_t len;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* An error means that nobody listens, which does no harm. */
	if (connect(fd, (const struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
			    len)) == 0)
		(void)fds_send(
			fd, state, strlen(state), &passed, passed >= 0, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * The client's end of the control socket: finds the socket of a mount, sends
 * requests and returns the lines of the answers. One thread at a time uses a
 * client.
 */
#ifndef FLEET_CLIENT_H
#define FLEET_CLIENT_H

#include <jansson.h>
#include <sys/types.h>

#include "common/base/err.h"

struct ctl_client;

/* Check that the name of a mount is not the URL of its source. Returns 0 or
 * -EINVAL. */
int ctl_name_check(const char *mountpoint, struct error *err);

/*
 * Connect to the daemon of the mount with this root, or of the mount whose
 * control socket has this path. Errors say what to do:
 * -ENODATA if it is not a refrain mount, -ENOTCONN if its daemon is dead,
 * -EACCES if it belongs to another user, -ETIMEDOUT if it does not answer
 * (because it is stopped, for example), or another -errno.
 */
int ctl_connect(
	struct ctl_client **out, const char *mountpoint, struct error *err);

/* Like ctl_connect(), given the path of the socket. */
int ctl_connect_path(
	struct ctl_client **out, const char *path, struct error *err);

/*
 * The same for a mount whose attribute TALK_XATTR has been read already: `rc`
 * is its length or -errno, `path` its value. The mount belongs to `owner`.
 */
int ctl_connect_found(struct ctl_client **out, const char *mountpoint,
	uid_t owner, int rc, const char *path, struct error *err);

/* NULL is allowed. */
void ctl_disconnect(struct ctl_client *client);

/* The daemon's process id; 0 if this process cannot see it. */
pid_t ctl_client_pid(const struct ctl_client *client);

/* Called with each progress line, which stays the callee's only for the call.
 */
typedef void ctl_line_fn(void *arg, const json_t *line);

/*
 * Send a request and wait for the last line of the answer, which the caller
 * then owns. Takes ownership of `request`; NULL gives -ENOMEM. `progress` may
 * be NULL. Returns -EREMOTEIO if the daemon answered with an error, which is in
 * err; -ETIMEDOUT if no line came for timeout_s seconds (0: no limit); -EPIPE
 * if the daemon is gone. After the last two the client is unusable.
 */
int ctl_request(struct ctl_client *client, json_t *request, unsigned timeout_s,
	ctl_line_fn *progress, void *arg, json_t **reply, struct error *err);

/*
 * The same in two steps, to talk to several daemons at once: send a request
 * (takes ownership), and receive its answer, which must be one line, when the
 * descriptor is readable. ctl_client_receive() waits for up to timeout_ms (-1:
 * no limit) and returns -ETIMEDOUT after that; the caller may receive again.
 */
int ctl_client_send(
	struct ctl_client *client, json_t *request, struct error *err);
int ctl_client_receive(struct ctl_client *client, int timeout_ms,
	json_t **reply, struct error *err);
/* Receive one line of an answer that has several. Returns 1 if it was the last
 * one, in *reply; 0 if it was another one, for which progress() was called; or
 * -errno, -ETIMEDOUT as above. */
int ctl_client_line(struct ctl_client *client, int timeout_ms,
	ctl_line_fn *progress, void *arg, json_t **reply, struct error *err);
int ctl_client_fd(const struct ctl_client *client);

/*
 * Set the message about a mount whose daemon does not answer, and return
 * -ETIMEDOUT. The client may be NULL: its process is then looked for.
 */
int ctl_says_nothing(const struct ctl_client *client, const char *mountpoint,
	uid_t owner, struct error *err);

/* Wait until the daemon's process has ended. If that process is not visible,
 * wait until the daemon has closed the connection. Returns -ETIMEDOUT if
 * neither happens in time. */
int ctl_wait_gone(struct ctl_client *client, int timeout_ms);

#endif

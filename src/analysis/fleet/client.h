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
 * Connect to the daemon of a mount. `mountpoint` is the root of the mount or
 * the path of its control socket. Returns 0, or with a message that says what
 * to do: -ENODATA if it is not a refrain mount, -ENOTCONN if its daemon is
 * dead, -EACCES if it belongs to another user, -ETIMEDOUT if it does not answer
 * (for example because it is stopped), or another -errno.
 */
int ctl_connect(
	struct ctl_client **out, const char *mountpoint, struct error *err);

/* Like ctl_connect(), but `path` is the path of the socket. */
int ctl_connect_path(
	struct ctl_client **out, const char *path, struct error *err);

/* Like ctl_connect(), for a mount whose attribute TALK_XATTR has been read
 * already: `rc` is its length or -errno, `path` its value. The mount belongs to
 * `owner`. */
int ctl_connect_found(struct ctl_client **out, const char *mountpoint,
	uid_t owner, int rc, const char *path, struct error *err);

/* NULL is allowed. */
void ctl_disconnect(struct ctl_client *client);

/* Returns the process number of the daemon; 0 if this process cannot see it. */
pid_t ctl_client_pid(const struct ctl_client *client);

/* Called with each line of progress, which is valid during the call. */
typedef void ctl_line_fn(void *arg, const json_t *line);

/*
 * Send a request and wait for the last line of the answer, which the caller
 * then owns. Owns `request`; NULL gives -ENOMEM. `progress` may be NULL.
 * Returns 0; -EREMOTEIO if the daemon answered with an error, which is in err;
 * -ETIMEDOUT if no line came for timeout_s seconds (0: no limit); or -EPIPE if
 * the daemon is gone. After -ETIMEDOUT and -EPIPE the client cannot be used any
 * more.
 */
int ctl_request(struct ctl_client *client, json_t *request, unsigned timeout_s,
	ctl_line_fn *progress, void *arg, json_t **reply, struct error *err);

/*
 * ctl_request() in two steps, for requests to several daemons at once.
 * ctl_client_send() sends a request, which it owns. ctl_client_receive()
 * receives the answer, which must be one line, when the descriptor is readable.
 * It waits for up to timeout_ms (-1: no limit) and then returns -ETIMEDOUT; the
 * caller may call it again.
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

/* Set the message for a mount whose daemon does not answer. Returns -ETIMEDOUT.
 * If the client is NULL, the process of the daemon is searched for. */
int ctl_says_nothing(const struct ctl_client *client, const char *mountpoint,
	uid_t owner, struct error *err);

/* Wait until the daemon's process has ended. If that process is not visible,
 * wait until the daemon has closed the connection. Returns 0, or -ETIMEDOUT if
 * this does not happen in time. */
int ctl_wait_gone(struct ctl_client *client, int timeout_ms);

#endif

/* SPDX-License-Identifier: MIT */
/* The HTTP server of the exporter, with libmicrohttpd, which starts no threads
 * here. A scrape looks at all mounts, and other clients wait meanwhile; this
 * takes up to a second if a mount has begun to hang. No request changes
 * anything. */
#include "analysis/fleet/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/fleet/exporter_clients_impl.h"
#include "analysis/fleet/exporter_names_impl.h"
#include "analysis/fleet/exporter_listen_impl.h"
#include "analysis/fleet/exporter_page_impl.h"
#include "analysis/fleet/fleet.h"
#include "analysis/fleet/metrics.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/magic.h"
#include "common/base/mountinfo.h"

/* The interval at which to check whether the mount still exists, in case the
 * kernel does not report a change of its list. */
#define GONE_MS 1000
/* If nothing has been mounted for this time, nothing will be. */
#define NEVER_NS (120 * NS_PER_S)
/* At the same address, the exporter of an earlier mount may still be listening.
 * It ends within this time. */
#define LISTEN_NS (10 * NS_PER_S)
#define LISTEN_AGAIN_MS 50

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS "application/openmetrics-text"
#define OPENMETRICS_TYPE OPENMETRICS "; version=1.0.0; charset=utf-8"

struct exporter {
	uint32_t magic;
	const struct exporter_config *config;
	struct fleet *fleet;
	struct exporter_clients clients;
	bool seen;	   /* a mount at config.mountpoint was seen */
	bool alone;	   /* config.mounter has ended */
	uint64_t begun_ns; /* set once */
};

/* -- Answers --------------------------------------------------------------- */

static enum MHD_Result exporter_reply(struct MHD_Connection *to,
	unsigned status, const char *type, struct MHD_Response *response)
{
	enum MHD_Result done = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(
		    response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
		MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
			"no-store") == MHD_YES &&
		MHD_add_response_header(response, "X-Content-Type-Options",
			"nosniff") == MHD_YES)
		done = MHD_queue_response(to, status, response);
	MHD_destroy_response(response);
	return done;
}

static enum MHD_Result reply_text(
	struct MHD_Connection *to, unsigned status, const char *text)
{
	return exporter_reply(to, status, "text/plain; charset=utf-8",
		MHD_create_response_from_buffer(strlen(text),
			(void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

/* The mounts and shares that an answer shows. */
struct exporter_view {
	struct metrics_mount *mount;
	size_t n;
	char *names;	/* escaped names of the mounts */
	json_t *shares; /* shares, or NULL */
};

static void view_release(struct exporter_view *v)
{
	free(v->mount);
	free(v->names);
	json_decref(v->shares);
}

static int view_mounts(struct exporter *e, struct exporter_view *v)
{
	size_t n = fleet_count(e->fleet), room = 4 * PATH_MAX;

	v->mount = calloc(n + 1, sizeof(*v->mount));
	v->names = malloc((n + 1) * room);
	if (!v->mount || !v->names)
		return -ENOMEM;
	for (v->n = 0; v->n < n; v->n++) {
		struct fleet_mount one = fleet_get(e->fleet, v->n);

		v->mount[v->n] = (struct metrics_mount){
			escape_name(
				v->names + v->n * room, room, one.mountpoint),
			one.status, one.state == FLEET_REFUSED};
	}
	return 0;
}

/* Look at all mounts and shares. Returns 0 or -errno. */
static int view_take(struct exporter *e, struct exporter_view *v)
{
	uint64_t until_ns = clock_now_ns() + FLEET_TIMEOUT_MS * NS_PER_MS;
	int rc;

	/* Ask the hosts of shares first, so that they answer while the mounts
	 * are asked. */
	if (e->config->shares_begin)
		e->config->shares_begin(e->config->shares);
	rc = fleet_look(e->fleet, FLEET_TIMEOUT_MS, NULL);
	if (e->config->shares_begin)
		v->shares = e->config->shares_end(e->config->shares, until_ns);
	return rc < 0 ? rc : view_mounts(e, v);
}

/* Print the metrics to memory, which the caller frees; NULL if memory is short.
 */
static char *scrape(struct exporter *e, bool openmetrics, size_t *size)
{
	struct exporter_view v = {NULL};
	char *text = NULL;
	FILE *to;

	to = view_take(e, &v) == 0 ? open_memstream(&text, size) : NULL;
	if (to) {
		metrics_print(to,
			&(struct metrics){
				openmetrics, true, v.mount, v.n, v.shares});
		if (fclose(to) != 0) {
			free(text);
			text = NULL;
		}
	}
	view_release(&v);
	return text;
}

static const char no_view[] =
	"memory is short, or the list of mounts cannot be read\n";

static enum MHD_Result reply_metrics(
	struct exporter *e, struct MHD_Connection *to)
{
	const char *accept = MHD_lookup_connection_value(
		to, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool openmetrics = accept && strstr(accept, OPENMETRICS);
	size_t size;
	char *text = scrape(e, openmetrics, &size);

	if (!text)
		return reply_text(to, MHD_HTTP_INTERNAL_SERVER_ERROR, no_view);
	return exporter_reply(to, MHD_HTTP_OK,
		openmetrics ? OPENMETRICS_TYPE : TEXT_TYPE,
		MHD_create_response_from_buffer(
			size, text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result reply_data(struct exporter *e, struct MHD_Connection *to)
{
	struct exporter_view v = {NULL};
	char *text = NULL;
	size_t size;

	if (view_take(e, &v) == 0)
		text = page_data(e->fleet, v.shares, &size);
	view_release(&v);
	if (!text)
		return reply_text(to, MHD_HTTP_INTERNAL_SERVER_ERROR, no_view);
	return exporter_reply(to, MHD_HTTP_OK, "application/json",
		MHD_create_response_from_buffer(
			size, text, MHD_RESPMEM_MUST_FREE));
}

/* The page refers to nothing outside, and asks only this exporter. */
static const char page_policy[] =
	"default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
	"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
	"form-action 'none'; frame-ancestors 'none'";

static enum MHD_Result reply_page(struct MHD_Connection *to)
{
	size_t size;
	const char *html = page_html(&size);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		size, (void *)(uintptr_t)html, MHD_RESPMEM_PERSISTENT);

	if (response &&
		MHD_add_response_header(response, "Content-Security-Policy",
			page_policy) != MHD_YES) {
		MHD_destroy_response(response);
		return MHD_NO;
	}
	return exporter_reply(
		to, MHD_HTTP_OK, "text/html; charset=utf-8", response);
}

/* Does the request name this host? A socket has no name that could lie. */
static bool names_this_host(
	const struct exporter *e, struct MHD_Connection *from)
{
	const char *listen = e->config->listen;

	return strncmp(listen, "unix:", 5) == 0 ||
		exporter_host_allowed(
			MHD_lookup_connection_value(
				from, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
			listen);
}

static enum MHD_Result exporter_handle(void *arg, struct MHD_Connection *to,
	const char *url, const char *method, const char *version,
	const char *upload, size_t *upload_size, void **state)
{
	static int begun;

	(void)version;
	(void)upload;
	/* Refuse the request in this first call; later, libmicrohttpd does not
	 * allow it. */
	if (!*state && strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return reply_text(to, MHD_HTTP_METHOD_NOT_ALLOWED,
			"only GET and HEAD are allowed\n");
	/* A scraper may use any name of this host, which only its network
	 * knows; a web page could read these metrics, but not the page. */
	if (!*state && strcmp(url, "/metrics") != 0 &&
		!names_this_host(OBJECT(exporter, arg), to))
		return reply_text(to, MHD_HTTP_FORBIDDEN,
			"this name is not known here; use the address or the "
			"host name of this host\n");
	if (!*state || *upload_size > 0) {
		*state = &begun;
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") == 0)
		return reply_metrics(OBJECT(exporter, arg), to);
	if (strcmp(url, "/data.json") == 0)
		return reply_data(OBJECT(exporter, arg), to);
	if (strcmp(url, "/") == 0)
		return reply_page(to);
	return reply_text(to, MHD_HTTP_NOT_FOUND,
		"the metrics are at /metrics, and a page is at /\n");
}

/* -- Connections ----------------------------------------------------------- */

static void exporter_connection(void *arg, struct MHD_Connection *connection,
	void **place, enum MHD_ConnectionNotificationCode what)
{
	struct exporter *e = OBJECT(exporter, arg);

	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		clients_remove(*place);
	else
		*place = clients_add(&e->clients,
			MHD_get_connection_info(
				connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd,
			MHD_get_connection_info(
				connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
				->client_addr);
}

static void exporter_completed(void *arg, struct MHD_Connection *connection,
	void **state, enum MHD_RequestTerminationCode how)
{
	(void)arg;
	(void)state;
	(void)how;
	clients_answered(MHD_get_connection_info(
		connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
				 ->socket_context);
}

/* -- The loop -------------------------------------------------------------- */

static int signals_open(void)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
		signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	return fd;
}

/* Has the mount for which this exporter was started been unmounted? */
static bool mount_is_gone(struct exporter *e)
{
	struct mountinfo_device device;
	int rc;

	if (!e->config->mountpoint)
		return false;
	rc = mountinfo_find(e->config->mountpoint, &device);
	if (rc == 0 && device.refrain)
		e->seen = true;
	/* If another file system is mounted at the path, such as a volume,
	 * refrain may still be mounted over it, so this counts like an empty
	 * path. */
	return (rc == -ENOENT || (rc == 0 && !device.refrain)) &&
		(e->seen || e->alone ||
			clock_now_ns() > e->begun_ns + NEVER_NS);
}

/* The descriptors for which the loop waits; each may be -1. */
enum { WAIT_SIGNAL, WAIT_HTTP, WAIT_MOUNTS, WAIT_MOUNTER, WAITS };

/* Returns the milliseconds until something has to be done; -1: no time is set.
 */
static int exporter_due_ms(struct exporter *e, struct MHD_Daemon *http)
{
	int wait_ms = clients_expire(&e->clients);
	unsigned MHD_LONG_LONG due_ms;

	if (e->config->mountpoint && (wait_ms < 0 || wait_ms > GONE_MS))
		wait_ms = GONE_MS;
	/* Without time limits of its own, libmicrohttpd only reports whether it
	 * has work left. */
	if (MHD_get_timeout(http, &due_ms) == MHD_YES &&
		(wait_ms < 0 || due_ms < (unsigned)wait_ms))
		wait_ms = (int)due_ms;
	return wait_ms;
}

/* Serve until a signal arrives or the mount is gone. */
static int exporter_loop(
	struct exporter *e, struct MHD_Daemon *http, struct pollfd p[WAITS])
{
	p[WAIT_HTTP].fd =
		MHD_get_daemon_info(http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	for (;;) {
		if (poll(p, WAITS, exporter_due_ms(e, http)) < 0 &&
			errno != EINTR)
			return -errno;
		if (p[WAIT_MOUNTER].revents) {
			e->alone = true;
			p[WAIT_MOUNTER].fd = -1;
		}
		if ((p[WAIT_SIGNAL].revents & POLLIN) || mount_is_gone(e))
			return 0;
		(void)MHD_run(http); /* can only fail in other modes */
	}
}

static int exporter_serve(struct exporter *e, int fd, struct error *err)
{
	CLEANUP_FD int signals = signals_open();
	/* If this fails, the list is checked every second. */
	CLEANUP_FD int mounts =
		open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	CLEANUP_FD int mounter = e->config->mounter
		? (int)syscall(SYS_pidfd_open, (pid_t)e->config->mounter, 0)
		: -1;
	struct pollfd p[WAITS] = {
		[WAIT_SIGNAL] = {.fd = signals, .events = POLLIN},
		[WAIT_HTTP] = {.events = POLLIN},
		[WAIT_MOUNTS] = {.fd = e->config->mountpoint ? mounts : -1,
			.events = POLLPRI},
		[WAIT_MOUNTER] = {.fd = mounter, .events = POLLIN},
	};
	struct MHD_Daemon *http;
	int rc;

	e->alone = e->config->mounter && mounter < 0 && errno == ESRCH;
	if (signals < 0)
		return error_set(err, signals, "cannot handle signals: %m");
	http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, exporter_handle,
		e, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		CLIENTS_MAX, MHD_OPTION_NOTIFY_CONNECTION, exporter_connection,
		e, MHD_OPTION_NOTIFY_COMPLETED, exporter_completed, e,
		MHD_OPTION_END);
	if (!http)
		return error_set(err, -EIO, "cannot start the HTTP server");
	rc = exporter_loop(e, http, p);
	MHD_stop_daemon(http); /* also closes the socket */
	return rc < 0 ? error_set(err, rc, "cannot wait: %m") : 0;
}

/* Listen at the address. The exporter of a mount that was just unmounted may
 * still be listening there, so try again for a while. */
static int listen_in_turn(struct exporter *e, const char *at, struct error *err)
{
	uint64_t until_ns = e->begun_ns + LISTEN_NS;
	int fd;

	for (;;) {
		fd = exporter_listen(at, err);
		if (fd != -EADDRINUSE || !e->config->mountpoint ||
			clock_now_ns() > until_ns)
			return fd;
		(void)poll(NULL, 0, LISTEN_AGAIN_MS);
	}
}

/* Close the output, because the program that mounts may wait for its end, and
 * this process writes no more to it. */
static void let_output_go(void)
{
	CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd); /* no output of this process is needed */
}

int exporter_run(const struct exporter_config *config, struct error *err)
{
	struct exporter e = {.config = config, .begun_ns = clock_now_ns()};
	CLEANUP_FREE char *at = exporter_address(config->listen);
	int fd, rc;

	if (!at)
		return error_set(err, -errno, "cannot listen on '%s': %m",
			config->listen);
	MAGIC_BEGIN(&e, exporter);
	clients_init(&e.clients);
	rc = fleet_new(&e.fleet);
	if (rc < 0)
		return error_set(err, rc, "%m");
	/* Leave the working directory: it may be on a file system that somebody
	 * wants to unmount. */
	fd = chdir("/") < 0 ? error_set(err, -errno, "cannot enter '/': %m")
			    : listen_in_turn(&e, at, err);
	if (fd >= 0 && config->mountpoint)
		let_output_go();
	rc = fd < 0 ? fd : exporter_serve(&e, fd, err);
	if (fd >= 0)
		exporter_unlisten(at);
	fleet_free(e.fleet);
	MAGIC_END(&e);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server of the exporter, on libmicrohttpd without threads of its own:
 * a scrape looks at all mounts, which takes up to a second if one hangs that
 * did not hang before, and others wait meanwhile. It only reads: there is
 * nothing that a request could change.
 */
#include "analysis/fleet/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "analysis/fleet/exporter_listen_impl.h"
#include "analysis/fleet/fleet.h"
#include "analysis/fleet/metrics.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/mountinfo.h"

#define CONNECTIONS_MAX 64u
#define IDLE_S 30u
/* How often to look whether the mount is still there. */
#define GONE_MS 1000
/* Nothing will be mounted there any more. */
#define NEVER_NS (120 * NS_PER_S)

#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS "application/openmetrics-text"
#define OPENMETRICS_TYPE OPENMETRICS "; version=1.0.0; charset=utf-8"

struct exporter {
	uint32_t magic;
	const struct exporter_config *config;
	struct fleet *fleet;
	bool seen;	   /* config.mountpoint was mounted */
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
			"no-store") == MHD_YES)
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

/* Print everything to memory, which the caller frees; NULL for want of it. */
static char *scrape(struct exporter *e, bool openmetrics, size_t *size)
{
	uint64_t until_ns = clock_now_ns() + FLEET_TIMEOUT_MS * NS_PER_MS;
	CLEANUP_FREE struct metrics_mount *mounts = NULL;
	struct metrics m = {.openmetrics = openmetrics, .fleet = true};
	json_t *shares = NULL;
	void *asked = NULL;
	char *text = NULL;
	FILE *to;
	int rc;

	/* The hosts of shares answer while the mounts do. */
	if (e->config->shares_begin)
		asked = e->config->shares_begin();
	rc = fleet_look(e->fleet, FLEET_TIMEOUT_MS, NULL);
	if (e->config->shares_begin)
		shares = e->config->shares_end(asked, until_ns);
	if (rc < 0) {
		json_decref(shares);
		return NULL;
	}
	m.nmounts = fleet_count(e->fleet);
	mounts = calloc(m.nmounts + 1, sizeof(*mounts));
	to = mounts ? open_memstream(&text, size) : NULL;
	if (!to) {
		json_decref(shares);
		return NULL;
	}
	for (size_t i = 0; i < m.nmounts; i++) {
		struct fleet_mount one = fleet_get(e->fleet, i);

		mounts[i] = (struct metrics_mount){one.mountpoint, one.status};
	}
	m.mount = mounts;
	m.shares = shares;
	metrics_print(to, &m);
	json_decref(shares);
	if (fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static enum MHD_Result reply_metrics(
	struct exporter *e, struct MHD_Connection *to)
{
	const char *accept = MHD_lookup_connection_value(
		to, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool openmetrics = accept && strstr(accept, OPENMETRICS);
	size_t size;
	char *text = scrape(e, openmetrics, &size);

	if (!text)
		return reply_text(to, MHD_HTTP_INTERNAL_SERVER_ERROR,
			"memory is short, or the list of mounts cannot be "
			"read\n");
	return exporter_reply(to, MHD_HTTP_OK,
		openmetrics ? OPENMETRICS_TYPE : TEXT_TYPE,
		MHD_create_response_from_buffer(
			size, text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result exporter_handle(void *arg, struct MHD_Connection *to,
	const char *url, const char *method, const char *version,
	const char *upload, size_t *upload_size, void **state)
{
	static int begun;

	(void)version;
	(void)upload;
	/* Only before the body of a request has come may it be refused. */
	if (!*state && strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return reply_text(to, MHD_HTTP_METHOD_NOT_ALLOWED,
			"only GET and HEAD are allowed\n");
	if (!*state || *upload_size > 0) {
		*state = &begun;
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") == 0)
		return reply_metrics(OBJECT(exporter, arg), to);
	if (strcmp(url, "/") == 0)
		return reply_text(to, MHD_HTTP_OK,
			"refrain exporter: the metrics are at /metrics\n");
	return reply_text(
		to, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics\n");
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

/* Has the mount that this exporter is for been unmounted? */
static bool mount_is_gone(struct exporter *e)
{
	struct mountinfo_device device;
	int rc;

	if (!e->config->mountpoint)
		return false;
	rc = mountinfo_find(e->config->mountpoint, &device);
	if (rc == 0 && device.refrain)
		e->seen = true;
	/* What is under the mount may be another one, such as a volume. */
	return (rc == -ENOENT || (rc == 0 && !device.refrain)) &&
		(e->seen || clock_now_ns() > e->begun_ns + NEVER_NS);
}

/* Serve until a signal comes or the mount is gone. */
static int exporter_loop(
	struct exporter *e, struct MHD_Daemon *http, int signals)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd p[2] = {{.fd = signals, .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN}};
	unsigned MHD_LONG_LONG due_ms;
	int wait_ms;

	for (;;) {
		wait_ms = e->config->mountpoint ? GONE_MS : -1;
		if (MHD_get_timeout(http, &due_ms) == MHD_YES &&
			(wait_ms < 0 || due_ms < (unsigned)wait_ms))
			wait_ms = due_ms < IDLE_S * 1000U ? (int)due_ms
							  : (int)IDLE_S * 1000;
		if (poll(p, 2, wait_ms) < 0 && errno != EINTR)
			return -errno;
		if ((p[0].revents & POLLIN) || mount_is_gone(e))
			return 0;
		(void)MHD_run(http); /* only fails in other modes */
	}
}

static int exporter_serve(struct exporter *e, int fd, struct error *err)
{
	CLEANUP_FD int signals = signals_open();
	struct MHD_Daemon *http;
	int rc;

	if (signals < 0)
		return error_set(err, signals, "cannot handle signals: %m");
	http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, exporter_handle,
		e, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_END);
	if (!http)
		return error_set(err, -EIO, "cannot start the HTTP server");
	rc = exporter_loop(e, http, signals);
	MHD_stop_daemon(http); /* closes the socket */
	return rc < 0 ? error_set(err, rc, "cannot wait: %m") : 0;
}

/* The program that mounts has said all: have nobody wait for the end of its
 * output. */
static void let_output_go(void)
{
	CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd); /* the output would only be kept */
}

int exporter_run(const struct exporter_config *config, struct error *err)
{
	struct exporter e = {.config = config, .begun_ns = clock_now_ns()};
	int fd, rc;

	MAGIC_BEGIN(&e, exporter);
	rc = fleet_new(&e.fleet);
	if (rc < 0)
		return error_set(err, rc, "%m");
	fd = exporter_listen(config->listen, err);
	if (fd >= 0 && config->mountpoint)
		let_output_go();
	rc = fd < 0 ? fd : exporter_serve(&e, fd, err);
	if (fd >= 0)
		exporter_unlisten(config->listen);
	fleet_free(e.fleet);
	MAGIC_END(&e);
	return rc;
}

/* SPDX-License-Identifier: MIT */
/*
 * Hosts a share for other processes. Called by the caller's thread and by the
 * host's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "loader/share/share_host_serve.h"
#include "loader/share/share_host_engine_impl.h"

#define SOON_NS (100 * NS_PER_MS)

struct loader_host {
	struct shared_run run;
	struct share_place *place;
	struct shared_host *host;
};

static void loader_host_free(struct loader_host *h)
{
	shared_run_release(&h->run);
	share_place_put(h->place);
	free(h);
}

/* Become the host, and try again for a while: the previous host may be ending,
 * or another process may hold the lock for a moment to check whether there is a
 * host. */
static int host_soon(struct loader_host *h, struct share_host_config *config,
	struct error *err)
{
	uint64_t until_ns = clock_now_ns() + SOON_NS;
	struct timespec nap = {.tv_nsec = (long)NS_PER_MS};
	int rc;

	while ((rc = shared_host_start(&h->host, &h->run, config, err)) ==
			-EAGAIN &&
		clock_now_ns() < until_ns)
		(void)nanosleep(&nap, NULL);
	return rc;
}

static int start_host(struct loader_host *h, const struct refrain_config *c,
	struct error *err)
{
	struct share_host_config config = {
		.jobs = c->share_jobs, .until_empty = true};
	char name[SHARE_FULL_NAME_MAX];
	int rc = shared_run_init(&h->run, c, err);

	if (rc < 0)
		return rc;
	shared_run_name(c, name);
	rc = share_place_get(&h->place, name, err);
	if (rc < 0)
		return rc;
	config.place = h->place;
	rc = host_soon(h, &config, err);
	if (rc == -EAGAIN)
		return error_set(err, -EEXIST,
			"share '%s' already has a host; see 'refrain share'",
			name);
	return rc;
}

int loader_host_open(struct loader_host **out,
	const struct refrain_config *config, struct error *err)
{
	struct loader_host *h = calloc(1, sizeof(*h));
	struct settings s;
	int rc;

	*out = NULL;
	if (!h)
		return error_set(err, -ENOMEM, "no memory for a share");
	rc = settings_init(&s, config, err);
	if (rc == 0 && !config->share)
		rc = error_set(err, -EINVAL, "share is not set");
	if (rc == 0)
		rc = share_name_check(config->share, err);
	if (rc == 0)
		rc = start_host(h, config, err);
	if (rc < 0) {
		loader_host_free(h);
		return rc;
	}
	*out = h;
	return 0;
}

int loader_host_fd(const struct loader_host *h)
{
	return share_host_done_fd(h->host->host);
}

int loader_host_close(
	struct loader_host *h, struct refrain_stats *stats, struct error *err)
{
	int rc = share_host_failed(h->host->host, err);

	/* the host itself is stopped below */
	(void)share_host_end(h->host->host);
	(void)shared_host_stats(h->host, stats);
	/* Threads that hang end with the process, so the memory that they use
	 * stays. */
	if (shared_host_stop(h->host) == 0)
		loader_host_free(h);
	return rc;
}

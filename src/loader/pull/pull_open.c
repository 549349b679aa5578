/* SPDX-License-Identifier: MIT */
/* Checks whether a loader can use the service, and names its job. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "loader/pull/pull_impl.h"
#include "loader/service/service_print.h"
#include "loader/service/service_secret.h"

/* The longest value of a memcached with its default settings, less the room
 * for key and administration. */
#define STORE_SAMPLE_MAX ((1U << 20) - 1024u)

static int check_settings(const struct puller *p, struct error *err)
{
	const struct settings *s = p->config.s;
	const char *what = NULL;

	if (!service_is_id(s->c.service_dataset, strlen(s->c.service_dataset)))
		what = "service_dataset must consist of letters, digits, '.', "
		       "'_' and '-'";
	else if (p->sample_bytes + SAMPLE_HEAD_BYTES > STORE_SAMPLE_MAX)
		what = "samples are larger than 1 MiB, which memcached does "
		       "not take";
	return what ? error_set(err, -EOPNOTSUPP, "service: %s", what) : 0;
}

/* Call this after check_settings(). */
static int name_job(struct puller *p, struct error *err)
{
	const struct pull_config *c = &p->config;
	struct service_conf conf = {
		.examples = dataset_count(c->dataset),
		.fingerprint = dataset_fingerprint(c->dataset),
	};
	int rc = service_print(&conf.print, err);

	(void)snprintf(conf.dataset, sizeof(conf.dataset), "%s",
		c->s->c.service_dataset);
	if (rc == 0)
		rc = service_conf_text(c->s, &conf, p->conf, err);
	if (rc < 0)
		return rc;
	p->conf_bytes = (size_t)rc;
	p->job = service_job(p->conf, p->conf_bytes);
	return 0;
}

static int name_reader(struct puller *p, struct error *err)
{
	const struct schedule_config *c = schedule_settings(&p->schedule);
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_set(err, -errno, "service: no random number: %m");
	(void)snprintf(p->id, sizeof(p->id), "r%016" PRIx64, random);
	p->note = (struct reader_note){.rank = c->rank,
		.world = c->world,
		.batch = c->batch,
		.lag = c->lag,
		.window = c->window,
		.echo = c->echo,
		.pid = (uint32_t)getpid()};
	p->note.state_bytes = (uint32_t)schedule_save(
		&p->schedule, p->config.step, p->note.state);
	(void)gethostname(p->note.host, sizeof(p->note.host) - 1);
	if (!service_is_id(p->note.host, strlen(p->note.host)))
		(void)snprintf(p->note.host, sizeof(p->note.host), "unknown");
	p->fresh_end = schedule_fresh_count(&p->schedule);
	return 0;
}

int pull_open_job(struct puller *p, struct error *err)
{
	const struct refrain_config *c = &p->config.s->c;
	char board[ADDRESS_MAX + 1];
	int rc = check_settings(p, err);

	p->also = c->service_local == REFRAIN_SERVICE_ALSO;
	p->seed = sample_seed(NULL, 0);
	if (rc == 0 && c->service_secret)
		rc = service_secret_read(c->service_secret, &p->seed, err);
	if (rc == 0)
		rc = service_address(
			board, c->service, SERVICE_BOARD_PORT, err);
	if (rc == 0)
		rc = name_job(p, err);
	if (rc == 0)
		rc = name_reader(p, err);
	if (rc < 0)
		return rc;
	rc = asker_new(&p->board, board, SERVICE_STATE_MAX, PULL_ANSWER_MS);
	return rc < 0 ? error_set(err, rc, "service: %m") : 0;
}

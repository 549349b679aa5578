/* SPDX-License-Identifier: MIT */
/*
 * refrain work: prepares samples for loaders on other hosts. The main thread is
 * the worker's scout; a signal only sets a flag.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/memcached/memcached_address.h"
#include "loader/work/work.h"
#include "peer_options.h"

#define WORK_BOARD_PORT 11213u
#define WORK_STORE_PORT 11212u

struct work_options {
	struct work_config config;
	/* allocated; its texts are words of argv */
	struct work_dataset *datasets;
	size_t room;
	struct peer_list secret; /* only its secret is used */
	const char *store, *secret_file;
	uint64_t memory_bytes;
};

static _Atomic bool work_ends;

static int work_add_dataset(void *out, const char *value, struct error *err)
{
	struct work_options *o = out;
	char *equals = strchr(value, '=');
	size_t n = o->config.ndatasets;

	if (!equals || equals == value || !equals[1])
		return error_set(err, -EINVAL, "'%s' is not NAME=PATH", value);
	if (ARRAY_ROOM(o->datasets, n, &o->room) < 0)
		return error_set(err, -ENOMEM, "%m");
	o->datasets[n].path = equals + 1;
	o->datasets[n].name = strndup(value, (size_t)(equals - value));
	if (!o->datasets[n].name)
		return error_set(err, -ENOMEM, "%m");
	o->config.ndatasets++;
	return 0;
}

static const struct option_def work_table[] = {
	{"dataset", 'd', "NAME=PATH",
		"Prepare samples of the dataset at PATH for loaders that call "
		"it NAME. May be repeated. The worker opens no other dataset.",
		OPTION_CALL, 0, work_add_dataset, true},
	{"store", 's', "HOST[:PORT]",
		"The memcached for the samples, as loaders can reach it "
		"(default: this host, port 11212).",
		OPTION_TEXT, offsetof(struct work_options, store), NULL, false},
	{"threads", 't', "N",
		"Number of threads that read, decode and augment (default: one "
		"per processor).",
		OPTION_NUMBER, offsetof(struct work_options, config.threads),
		NULL, false},
	{"memory", 'm', "SIZE",
		"Limit for the memory that a thread needs to decode one "
		"example (default: 1G).",
		OPTION_SIZE, offsetof(struct work_options, memory_bytes), NULL,
		false},
	{"secret", 0, "FILE",
		"Accept and make only samples whose checksums depend on the "
		"content of FILE.",
		OPTION_TEXT, offsetof(struct work_options, secret_file), NULL,
		false},
	{"exit-idle", 0, "SECONDS",
		"End after SECONDS without work (default: 0, never).",
		OPTION_NUMBER,
		offsetof(struct work_options, config.exit_idle_s), NULL, false},
	{.name = NULL},
};

const struct option_usage work_usage = {
	.name = "work",
	.operands = "BOARD[:PORT]",
	.summary = "Prepare samples for loaders on other hosts: learn from the "
		   "memcached at BOARD (default port: 11213) what they need, "
		   "and put the samples into a store.",
	.options = work_table,
	.min_operands = 1,
	.max_operands = 1,
};

static void work_end(int signal)
{
	(void)signal;
	work_ends = true;
}

static void work_refused(const char *dataset, const char *why)
{
	struct error err;

	(void)error_set(&err, -EINVAL,
		"cannot prepare dataset '%s' of a job: %s", dataset, why);
	(void)command_fail("work", &err);
}

/* Write the address: "HOST" becomes "HOST:PORT", and any other text stays as it
 * is. */
static void work_address(
	char out[ADDRESS_MAX + 1], const char *host, unsigned port)
{
	if (host[0] == '/' || strpbrk(host, ":,@"))
		(void)snprintf(out, ADDRESS_MAX + 1, "%s", host);
	else
		(void)snprintf(out, ADDRESS_MAX + 1, "%s:%u", host, port);
}

static int work_start_config(struct work_options *o, const char *given,
	char board[ADDRESS_MAX + 1], char store[ADDRESS_MAX + 1],
	struct error *err)
{
	char host[65] = "localhost";
	int rc = 0;

	/* if this fails, the host stays "localhost" */
	(void)gethostname(host, sizeof(host) - 1);
	work_address(board, given, WORK_BOARD_PORT);
	work_address(store, o->store ? o->store : host, WORK_STORE_PORT);
	if (o->secret_file)
		rc = peer_list_read_secret(&o->secret, o->secret_file, err);
	o->config.board = board;
	o->config.store = store;
	o->config.datasets = o->datasets;
	o->config.memory_bytes = o->memory_bytes;
	o->config.secret = o->secret.secret;
	o->config.secret_bytes = o->secret.secret_bytes;
	o->config.refused = work_refused;
	o->config.stop = &work_ends;
	return rc;
}

static void work_report(const struct work_counts *c)
{
	(void)printf("made %" PRIu64 " ranges: %" PRIu64
		     " examples decoded, %" PRIu64 " samples stored, %" PRIu64
		     " examples found in the store, %" PRIu64
		     " left to the loaders, %" PRIu64
		     " ranges lost to others\n",
		c->ranges, c->decodes, c->samples, c->reused, c->failed,
		c->lost);
}

int cmd_work(int argc, char **argv)
{
	char board[ADDRESS_MAX + 1], store[ADDRESS_MAX + 1];
	const struct sigaction end = {.sa_handler = work_end};
	struct work_options o = {.room = 0};
	struct work_counts counts;
	struct error err = {""};
	int status, rc;

	if (command_parse(&work_usage, argc, argv, &o, &status) < 0)
		return status;
	(void)sigaction(SIGTERM, &end, NULL); /* cannot fail */
	(void)sigaction(SIGINT, &end, NULL);
	rc = work_start_config(&o, argv[1], board, store, &err);
	if (rc == 0)
		rc = work_run(&o.config, &counts, &err);
	if (rc < 0)
		(void)command_fail("work", &err);
	else
		work_report(&counts);
	for (unsigned i = 0; i < o.config.ndatasets; i++)
		free((void *)(uintptr_t)o.datasets[i].name);
	free(o.datasets);
	peer_list_release(&o.secret);
	return rc == -EINVAL ? EXIT_USAGE : rc < 0 ? EXIT_FAILED : EXIT_OK;
}

/* SPDX-License-Identifier: MIT */
/* refrain peers: asks the servers of a partitioned cache for their settings and
 * their use, and prints the answers. The client has a second thread. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "command.h"
#include "origin/peer/peer.h"
#include "peer_options.h"
#include "peers_unit.h"

/* Time limit for the answers of the servers. */
#define PEERS_ANSWER_NS (3 * NS_PER_S)
/* Percentage of a server's memory that content fills, if the server runs as
 * `refrain peers --unit` prints it. Keys and headers need the rest. */
#define PEERS_CONTENT_PCT 94

struct peers_options {
	bool json, unit;
};

static const struct option_def peers_table[] = {
	{"json", 0, NULL, "Print one JSON object.", OPTION_FLAG,
		offsetof(struct peers_options, json), NULL, false},
	{"unit", 0, NULL,
		"Print a systemd unit that runs memcached with the settings "
		"that refrain needs, and exit.",
		OPTION_FLAG, offsetof(struct peers_options, unit), NULL, false},
	{.name = NULL},
};

const struct option_usage peers_usage = {
	.name = "peers",
	.operands = PEER_LIST_HELP,
	.summary =
		"Check the settings of the memcached servers on these hosts, "
		"and show how full each is.",
	.options = peers_table,
	.min_operands = 1,
	.max_operands = 1,
};

/* -- For people ------------------------------------------------------------ */

static void peers_print_name(const char *name, int columns)
{
	char shown[4 * PEER_NAME_MAX + 1];

	(void)printf("%-*s", columns, escape_text(shown, sizeof(shown), name));
}

static void peers_print_one(const struct peer_status *s, int columns)
{
	char used[SIZE_TEXT_MAX], capacity[SIZE_TEXT_MAX];

	peers_print_name(s->host, columns);
	(void)printf("  %-8s", peer_state_name(s->state));
	if (s->capacity_bytes == 0) {
		(void)putchar('\n');
		return;
	}
	(void)printf(" %-9s %9s %9s %3.0f %% %10" PRIu64 " %10" PRIu64 "\n",
		s->version, size_format(s->used_bytes, used),
		size_format(s->capacity_bytes, capacity),
		100.0 * (double)s->used_bytes / (double)s->capacity_bytes,
		s->items, s->evictions);
}

static void peers_print_reason(const struct peer_status *s)
{
	if (!s->reason[0])
		return;
	escape_print(stdout, s->host);
	(void)fputs(": ", stdout);
	escape_print(stdout, s->reason);
	(void)putchar('\n');
}

static void peers_print(const struct peer_status *all, size_t n)
{
	uint64_t used = 0, capacity = 0, fits;
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], c[SIZE_TEXT_MAX];
	size_t columns = strlen("host"), up = 0;

	for (size_t i = 0; i < n; i++)
		if (strlen(all[i].host) > columns)
			columns = strlen(all[i].host);
	(void)printf("%-*s  %-8s %-9s %9s %9s %5s %10s %10s\n", (int)columns,
		"host", "state", "version", "used", "of", "full", "values",
		"evictions");
	for (size_t i = 0; i < n; i++) {
		peers_print_one(&all[i], (int)columns);
		if (all[i].state != PEER_UP)
			continue;
		used += all[i].used_bytes;
		capacity += all[i].capacity_bytes;
		up++;
	}
	fits = capacity / 100 * PEERS_CONTENT_PCT;
	(void)printf("%zu of %zu up, %s of %s used; a dataset of up to %s "
		     "fits\n",
		up, n, size_format(used, a), size_format(capacity, b),
		size_format(fits, c));
	for (size_t i = 0; i < n; i++)
		peers_print_reason(&all[i]);
}

/* -- For programs ---------------------------------------------------------- */

static json_t *peers_json_one(const struct peer_status *s)
{
	char host[4 * PEER_NAME_MAX + 1], reason[4 * PEER_REASON_MAX + 1];

	return json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I}", "host",
		escape_text(host, sizeof(host), s->host), "state",
		peer_state_name(s->state), "version", s->version, "reason",
		escape_text(reason, sizeof(reason), s->reason), "used_bytes",
		(json_int_t)s->used_bytes, "capacity_bytes",
		(json_int_t)s->capacity_bytes, "items", (json_int_t)s->items,
		"evictions", (json_int_t)s->evictions);
}

static int peers_print_json(const struct peer_status *all, size_t n)
{
	json_t *peers = json_array();
	json_t *o;
	char *text;

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(peers, peers_json_one(&all[i]));
	o = json_pack("{s:o}", "peers", peers);
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	if (!text)
		return EXIT_FAILED;
	(void)puts(text); /* main() checks for write errors */
	free(text);
	return EXIT_OK;
}

/* -- Both ------------------------------------------------------------------ */

/* Print the servers. Returns 1 if a server is not in use, else 0. */
static int peers_show(
	const struct peer_list *list, bool json, struct error *err)
{
	CLEANUP_FREE struct peer_status *all = calloc(list->n, sizeof(*all));
	struct peers_config config = {
		.host = (const char *const *)list->host,
		.nhosts = list->n,
	};
	struct peers *peers;
	int status = EXIT_OK, rc;

	if (!all)
		return error_set(err, -ENOMEM, "%m");
	rc = peers_start(&peers, &config, err);
	if (rc < 0)
		return rc;
	/* after a time-out, servers without an answer are printed as not up */
	(void)peers_settle(peers, PEERS_ANSWER_NS);
	for (size_t i = 0; i < list->n; i++) {
		peers_status(peers, i, &all[i]);
		if (all[i].state != PEER_UP)
			status = EXIT_FAILED;
	}
	peers_stop(peers);
	if (!json)
		peers_print(all, list->n);
	else if (peers_print_json(all, list->n) != EXIT_OK)
		status = EXIT_FAILED;
	return status;
}

int cmd_peers(int argc, char **argv)
{
	struct peers_options o = {.json = false};
	struct peer_list list = {0};
	struct error err = {""};
	int status;

	if (command_parse(&peers_usage, argc, argv, &o, &status) < 0)
		return status;
	if (o.json && o.unit)
		(void)error_set(
			&err, -EINVAL, "give only one of --json and --unit");
	else
		(void)peer_list_add(&list, argv[1], &err);
	if (err.msg[0]) {
		(void)command_fail("peers", &err);
		peer_list_release(&list);
		return EXIT_USAGE;
	}
	if (o.unit) {
		peers_unit_print(peer_list_self(&list));
		status = EXIT_OK;
	} else {
		status = peers_show(&list, o.json, &err);
	}
	if (status < 0)
		status = command_fail("peers", &err);
	peer_list_release(&list);
	return status;
}

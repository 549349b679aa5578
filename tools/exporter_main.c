/* SPDX-License-Identifier: MIT */
/*
 * refrain-exporter: serves the metrics of all mounts and shares over HTTP. One
 * thread.
 */
#include <errno.h>
#include <stdio.h>

#include "command.h"
#include "common/base/cleanup.h"
#include "exporter_options.h"
#include "share_views.h"

/* For struct exporter_config. NULL: the shares cannot be listed. */
static void *shares_begin(void)
{
	struct share_questions *questions = NULL;

	return share_views_begin(&questions, NULL, NULL) == 0 ? questions
							      : NULL;
}

/* For struct exporter_config. A share that cannot be asked has no view. */
static json_t *shares_end(void *asked, uint64_t until_ns)
{
	CLEANUP_FREE struct share_seen *seen = NULL;
	json_t *all = json_array();
	size_t n = 0;

	if (asked)
		(void)share_views_end(asked, until_ns, &seen, &n, NULL);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(all, share_seen_json(&seen[i]));
	return all;
}

int main(int argc, char **argv)
{
	struct exporter_config config = {
		.listen = EXPORTER_LISTEN,
		.shares_begin = shares_begin,
		.shares_end = shares_end,
	};
	struct error err = {""};
	int status, rc;

	if (command_parse(&exporter_usage, argc, argv, &config, &status) < 0)
		return status;
	rc = exporter_run(&config, &err);
	if (rc < 0)
		(void)command_fail("exporter", &err);
	return rc == -EINVAL ? EXIT_USAGE : rc < 0 ? EXIT_FAILED : EXIT_OK;
}

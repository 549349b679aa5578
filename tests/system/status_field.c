/* SPDX-License-Identifier: MIT */
/*
 * status_field: prints one member of the status of a mount as a line of text.
 * Tests do this thousands of times, and it starts in a tenth of the time of the
 * command, which loads libraries for remote sources. One thread.
 *
 * \tstatus_field MOUNTPOINT NAME
 *
 * Prints nothing if there is no such member. Exits with 1 if no daemon answers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/fleet/request.h"
#include "analysis/fleet/client.h"

static void print_member(const json_t *v)
{
	if (json_is_string(v))
		(void)puts(json_string_value(v));
	else if (v && json_dumpf(v, stdout, JSON_ENCODE_ANY) == 0)
		(void)putchar('\n');
}

int main(int argc, char **argv)
{
	struct ctl_client *client = NULL;
	json_t *status = NULL;
	struct error err = {""};
	int rc;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: status_field MOUNTPOINT NAME\n");
		return EXIT_FAILURE;
	}
	rc = ctl_connect(&client, argv[1], &err);
	if (rc == 0)
		rc = ask_status(client, &status, &err);
	if (rc == 0)
		print_member(json_object_get(status, argv[2]));
	else
		(void)fprintf(stderr, "status_field: %s\n", err.msg);
	json_decref(status);
	ctl_disconnect(client);
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: MIT */
/* refrain fault: changes the injected faults of a mount. */
#include "analysis/fleet/request.h"
#include "mount/daemon/json_text.h"
#include "command.h"

const struct option_usage fault_usage = {
	.name = "fault",
	.operands = "MOUNTPOINT SPEC",
	.summary = "Change the injected faults of a mount that was started "
		   "with --fault. An empty SPEC removes them.",
	.min_operands = 2,
	.max_operands = 2,
};

int cmd_fault(int argc, char **argv)
{
	struct error err = {""};
	json_t *reply = NULL, *request;
	int status;

	if (command_parse(&fault_usage, argc, argv, NULL, &status) < 0)
		return status;
	request = json_pack(
		"{s:s,s:o}", "cmd", "fault", "spec", ctl_text_new(argv[2]));
	if (ask(argv[1], request, NULL, NULL, &reply, &err) < 0)
		return command_fail("fault", &err);
	json_decref(reply);
	return EXIT_OK;
}

/* SPDX-License-Identifier: MIT */
/* Sends fuzzed input to a control socket, for the targets that test commands.
 */
#ifndef TESTS_FUZZ_PEER_H
#define TESTS_FUZZ_PEER_H

#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "fuzz.h"

/* Send the input to a server of these commands. Each line must get one answer,
 * which is JSON with "ok". */
void fuzz_peer(
	const struct ctl_command *commands, const uint8_t *data, size_t size);

#endif

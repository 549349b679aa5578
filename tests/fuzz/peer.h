/* SPDX-License-Identifier: MIT */
/* The input of a control socket from a peer, for the targets that use it. */
#ifndef TESTS_FUZZ_PEER_H
#define TESTS_FUZZ_PEER_H

#include "mount/daemon/control_server.h"
#include "mount/daemon/json_text.h"
#include "fuzz.h"

/* Every line gets one answer, which is JSON with "ok". */
void fuzz_peer(
	const struct ctl_command *commands, const uint8_t *data, size_t size);

#endif

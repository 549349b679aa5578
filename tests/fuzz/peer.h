/* SPDX-License-Identifier: MIT */
/* What a peer sends to a control socket, for the targets that take that. */
#ifndef TESTS_FUZZ_PEER_H
#define TESTS_FUZZ_PEER_H

#include "ctl/ctl.h"
#include "fuzz.h"

/* Every line gets one answer, which is JSON with "ok". */
void fuzz_peer(
	const struct ctl_command *commands, const uint8_t *data, size_t size);

#endif

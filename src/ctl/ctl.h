/* SPDX-License-Identifier: MIT */
/*
 * The control socket of a mount: an owner-only Unix stream socket with
 * line-delimited JSON (doc/control-protocol.md). server.h is the daemon's end,
 * client.h the other end, text.h converts names to JSON.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include "ctl/ask.h"
#include "ctl/client.h"
#include "ctl/gauges.h"
#include "ctl/server.h"
#include "ctl/text.h"
#include "talk/talk.h"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Serves metrics over HTTP. One thread, as fleet.h wants it.
 */
#ifndef FLEET_EXPORTER_H
#define FLEET_EXPORTER_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/err.h"

struct exporter_config {
	const char *listen; /* ADDR:PORT or unix:PATH */
	/* End when nothing is mounted there any more, or for two minutes; NULL:
	 * serve until a signal comes. */
	const char *mountpoint;
	/* With a mountpoint: the process that mounts it. If that ends and there
	 * is no mount, there will be none. 0: not known. */
	unsigned mounter;
	/* Ask the hosts of the shares; NULL: there are none. */
	void (*shares_begin)(void *shares);
	/* Wait for their answers until a time of the clock, and return the
	 * shares as metrics.h wants them; the caller owns these. It is called
	 * once after each shares_begin(). */
	json_t *(*shares_end)(void *shares, uint64_t until_ns);
	void *shares; /* the argument of both */
};

/*
 * Listen, and serve until SIGTERM or SIGINT. Returns -EINVAL if the address is
 * not valid, -ENOTSUP if this program was built without libmicrohttpd, or
 * another -errno.
 */
int exporter_run(const struct exporter_config *config, struct error *err);

#endif

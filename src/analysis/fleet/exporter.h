/* SPDX-License-Identifier: MIT */
/* Serves metrics over HTTP. One thread, as fleet.h requires. */
#ifndef FLEET_EXPORTER_H
#define FLEET_EXPORTER_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/err.h"

struct exporter_config {
	const char *listen; /* address: ADDR:PORT or unix:PATH */
	/* The exporter ends when this mount is gone, or after two minutes if
	 * nothing is mounted here; NULL: it serves until a signal arrives. */
	const char *mountpoint;
	/* The process that mounts at `mountpoint`; 0: not known. If it ends
	 * without a mount, the exporter ends, too. */
	unsigned mounter;
	/* Send requests to the hosts of the shares. NULL: there are no shares.
	 */
	void (*shares_begin)(void *shares);
	/* Called once after each shares_begin(). Wait for the answers at most
	 * until `until_ns`, and return the shares in the form of metrics.h; the
	 * caller owns the result. */
	json_t *(*shares_end)(void *shares, uint64_t until_ns);
	void *shares; /* the argument of both functions */
};

/* Listen, and serve until SIGTERM or SIGINT. Returns 0; -EINVAL if the address
 * is not valid; -ENOTSUP if this program was built without libmicrohttpd; or
 * another -errno. */
int exporter_run(const struct exporter_config *config, struct error *err);

#endif

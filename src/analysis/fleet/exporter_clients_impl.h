/* SPDX-License-Identifier: MIT */
/*
 * The connections of the exporter. Each must complete a request in time, and
 * when there are too many, of one address or in all, the one that has done
 * nothing for longest is closed for the new one: clients that send half a
 * request cannot keep others from their scrapes. One thread.
 */
#ifndef FLEET_EXPORTER_CLIENTS_IMPL_H
#define FLEET_EXPORTER_CLIENTS_IMPL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Connections at once, with some that are closed but not yet noticed. */
#define CLIENTS_MAX 64u

struct exporter_client {
	int fd;		   /* borrowed; -1: a free place */
	uint64_t since_ns; /* connected, or has its last answer */
	struct in6_addr from;
	bool closed; /* shut down; its end will be noticed */
};

struct exporter_clients {
	struct exporter_client client[CLIENTS_MAX];
};

void clients_init(struct exporter_clients *clients);

/*
 * Add a connection, and maybe close another for it. Returns its place, which
 * clients_remove() frees, or NULL if there is none. All clients of a Unix
 * socket count as one address.
 */
struct exporter_client *clients_add(
	struct exporter_clients *clients, int fd, const struct sockaddr *from);
void clients_remove(struct exporter_client *client); /* NULL is allowed */

/* The connection has its answer, and may send the next request. */
void clients_answered(struct exporter_client *client); /* NULL is allowed */

/* Shut down the connections whose time is over. Returns the milliseconds until
 * the next one's is, or -1: there is none. */
int clients_expire(struct exporter_clients *clients);

#endif

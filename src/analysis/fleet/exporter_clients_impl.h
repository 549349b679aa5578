/* SPDX-License-Identifier: MIT */
/*
 * The connections of the exporter. Each must complete a request in time. If
 * there are too many connections, of one address or in all, the one that has
 * done nothing for longest is closed, and the new one takes its place. So
 * clients that send only half a request cannot keep others from their scrapes.
 * One thread.
 */
#ifndef FLEET_EXPORTER_CLIENTS_IMPL_H
#define FLEET_EXPORTER_CLIENTS_IMPL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Maximum number of connections, including some that were shut down but whose
 * ends the server has not read. */
#define CLIENTS_MAX 64u

struct exporter_client {
	int fd;		   /* owned by the server; -1: the element is free */
	uint64_t since_ns; /* time of its beginning or of its last answer */
	struct in6_addr from;
	bool closed; /* it was shut down, but the server has not read its end */
};

struct exporter_clients {
	struct exporter_client client[CLIENTS_MAX];
};

void clients_init(struct exporter_clients *clients);

/* Add a connection. Another one may be closed for it. Returns its element,
 * which clients_remove() frees, or NULL if there is no free one. All clients of
 * a Unix socket count as one address. */
struct exporter_client *clients_add(
	struct exporter_clients *clients, int fd, const struct sockaddr *from);
void clients_remove(struct exporter_client *client); /* NULL is allowed */

/* Note that a client has got its answer, and may send the next request. */
void clients_answered(struct exporter_client *client); /* NULL is allowed */

/* Shut down the connections whose time is over. Returns the milliseconds until
 * the time of the next one is over; -1: there is none. */
int clients_expire(struct exporter_clients *clients);

#endif

/* SPDX-License-Identifier: MIT */
/* The connections of the exporter; see exporter_clients_impl.h. This file only
 * shuts a connection down. The HTTP server then reads its end, and closes it.
 */
#include "analysis/fleet/exporter_clients_impl.h"

#include <string.h>

#include "common/base/clock.h"

/* Maximum time of a connection without a complete request. If a client needs
 * the connection later, it opens another one. */
#define DEADLINE_NS (20 * NS_PER_S)
/* Maximum number of connections of one address. This is enough for some
 * browsers and scrapers; a browser opens up to six. */
#define ADDRESS_MAX 16u
/* Maximum number of connections that are not shut down. The server may accept
 * ten more before it reads the ends of those that were shut down for them. */
#define OPEN_MAX (CLIENTS_MAX - 16u)

void clients_init(struct exporter_clients *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		c->client[i].fd = -1;
}

/* Returns the address of a client. IPv4 addresses are mapped; all clients of
 * another family have one address. */
static struct in6_addr address_of_client(const struct sockaddr *from)
{
	struct in6_addr a = {.s6_addr = {0}};

	if (from && from->sa_family == AF_INET6) {
		a = ((const struct sockaddr_in6 *)(const void *)from)
			    ->sin6_addr;
	} else if (from && from->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)from;

		a.s6_addr[10] = a.s6_addr[11] = 0xff;
		memcpy(&a.s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
	}
	return a;
}

static void client_close(struct exporter_client *one)
{
	one->closed = true;
	/* fails if the client has ended the connection itself */
	(void)shutdown(one->fd, SHUT_RDWR);
}

/* If there are `max` connections, close the one that has done nothing for
 * longest. If `from` is not NULL, only connections of this address count. */
static void make_place(
	struct exporter_clients *c, const struct in6_addr *from, size_t max)
{
	struct exporter_client *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct exporter_client *one = &c->client[i];

		if (one->fd < 0 || one->closed ||
			(from && memcmp(from, &one->from, sizeof(*from)) != 0))
			continue;
		n++;
		if (!oldest || one->since_ns < oldest->since_ns)
			oldest = one;
	}
	if (n >= max && oldest)
		client_close(oldest);
}

struct exporter_client *clients_add(
	struct exporter_clients *c, int fd, const struct sockaddr *from)
{
	struct in6_addr address = address_of_client(from);

	make_place(c, &address, ADDRESS_MAX);
	make_place(c, NULL, OPEN_MAX);
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct exporter_client *one = &c->client[i];

		if (one->fd >= 0)
			continue;
		*one = (struct exporter_client){
			.fd = fd, .since_ns = clock_now_ns(), .from = address};
		return one;
	}
	return NULL;
}

void clients_remove(struct exporter_client *one)
{
	if (one)
		one->fd = -1;
}

void clients_answered(struct exporter_client *one)
{
	if (one)
		one->since_ns = clock_now_ns();
}

int clients_expire(struct exporter_clients *c)
{
	uint64_t now = clock_now_ns(), next = UINT64_MAX;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct exporter_client *one = &c->client[i];
		uint64_t due = one->since_ns + DEADLINE_NS;

		if (one->fd < 0 || one->closed)
			continue;
		if (due <= now)
			client_close(one);
		else if (due < next)
			next = due;
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / NS_PER_MS) + 1;
}

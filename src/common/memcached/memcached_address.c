/* SPDX-License-Identifier: MIT */
/* The address of a host; looks up its name. See memcached_address.h. */
#include "common/memcached/memcached_address.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"
#include "common/base/magic.h"

#define ADDRESS_PORT_TEXT 6

enum address_state { ADDRESS_UNKNOWN, ADDRESS_SOUGHT, ADDRESS_THERE };

struct address {
	uint32_t magic;
	/* this and the next member are set once */
	char node[ADDRESS_MAX + 1];
	char port[ADDRESS_PORT_TEXT];
	pthread_mutex_t lock; /* guards all members below */
	/* 1 for the owner, and 1 for a thread that is looking up */
	unsigned refs;
	enum address_state state;
	int status; /* result of the last look-up: 0 or -errno */
	struct sockaddr_storage addr;
	socklen_t len;
};

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long port = strtoul(text, NULL, 10);

	return digits > 0 && digits < ADDRESS_PORT_TEXT && !text[digits] &&
		port > 0 && port <= 65535;
}

/* Split "HOST:PORT". Returns false if the text does not have that form. */
static bool address_split(const char *host, char node[ADDRESS_MAX + 1],
	char port[ADDRESS_PORT_TEXT])
{
	const char *end = strrchr(host, ':'), *from = host;
	size_t len = strlen(host);

	(void)snprintf(port, ADDRESS_PORT_TEXT, "%u", ADDRESS_DEFAULT_PORT);
	if (host[0] == '[') {
		from++;
		end = strchr(host, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		len = (size_t)(end - from);
		end = end[1] ? end + 1 : NULL;
	} else if (end && strchr(host, ':') == end) {
		len = (size_t)(end - host);
	} else {
		/* not a port: an IPv6 address without brackets has several
		 * colons */
		end = NULL;
	}
	if (end && !is_port(end + 1))
		return false;
	if (end)
		(void)snprintf(port, ADDRESS_PORT_TEXT, "%s", end + 1);
	if (len == 0 || len > ADDRESS_MAX)
		return false;
	memcpy(node, from, len);
	node[len] = 0;
	return strpbrk(node, " ,/@\t\n") == NULL;
}

int address_check(const char *host, struct error *err)
{
	char node[ADDRESS_MAX + 1], port[ADDRESS_PORT_TEXT];
	struct sockaddr_un un;

	if (host[0] == '/' && strlen(host) < sizeof(un.sun_path))
		return 0;
	if (strlen(host) <= ADDRESS_MAX && address_split(host, node, port))
		return 0;
	return error_set(err, -EINVAL,
		"'%s' is not a host: write HOST, HOST:PORT, [IPV6]:PORT or "
		"the path of a socket",
		host);
}

static void address_take(
	struct address *a, const struct sockaddr *addr, socklen_t len)
{
	memcpy(&a->addr, addr, len);
	a->len = len;
	a->state = ADDRESS_THERE;
}

static int address_look(struct address *a, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list;

	if (getaddrinfo(a->node, a->port, &hints, &list) != 0)
		return -EHOSTUNREACH;
	pthread_mutex_lock(&a->lock);
	address_take(a, list->ai_addr, list->ai_addrlen);
	pthread_mutex_unlock(&a->lock);
	freeaddrinfo(list);
	return 0;
}

static void address_unref(struct address *a)
{
	bool last;

	pthread_mutex_lock(&a->lock);
	last = --a->refs == 0;
	pthread_mutex_unlock(&a->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&a->lock);
	MAGIC_END(a);
	free(a);
}

int address_new(struct address **out, const char *host)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct address *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	MAGIC_BEGIN(a, address);
	lock_init(&a->lock, RANK_ADDRESS);
	a->refs = 1;
	if (host[0] == '/') {
		(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", host);
		address_take(a, (const struct sockaddr *)&un, sizeof(un));
	} else {
		(void)address_split(host, a->node, a->port);
		/* Only a number is converted here. If `host` is a name,
		 * address_get() looks it up later. */
		(void)address_look(a, AI_NUMERICHOST);
	}
	*out = a;
	return 0;
}

void address_free(struct address *a)
{
	if (a)
		address_unref(a);
}

static void *address_main(void *arg)
{
	struct address *a = OBJECT(address, arg);
	int rc = address_look(a, 0);

	pthread_mutex_lock(&a->lock);
	a->status = rc;
	if (rc < 0)
		a->state = ADDRESS_UNKNOWN;
	pthread_mutex_unlock(&a->lock);
	address_unref(a);
	return NULL;
}

static int address_seek(struct address *a)
{
	pthread_t thread;
	int rc;

	a->refs++;
	a->state = ADDRESS_SOUGHT;
	rc = pthread_create(&thread, NULL, address_main, a);
	if (rc != 0) {
		a->refs--;
		a->state = ADDRESS_UNKNOWN;
		return -rc;
	}
	/* cannot fail: the thread can be joined */
	(void)pthread_detach(thread);
	return -EAGAIN;
}

int address_get(struct address *a, const struct sockaddr **addr, socklen_t *len)
{
	int rc;
	LOCK_SCOPE(&a->lock);

	*addr = (const struct sockaddr *)&a->addr;
	*len = a->len;
	if (a->state == ADDRESS_THERE)
		return 0;
	if (a->state == ADDRESS_SOUGHT)
		return -EAGAIN;
	rc = a->status;
	a->status = 0;
	return rc < 0 ? rc : address_seek(a);
}

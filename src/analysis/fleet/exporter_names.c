/* SPDX-License-Identifier: MIT */
/* Checks "Host:"; see exporter_names_impl.h. Owns the full name of the
 * host, which is asked for once. */
#include "analysis/fleet/exporter_names_impl.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NAME_ROOM 256

/* Copy the host of HOST:PORT, or of HOST; an IPv6 address is in brackets. */
static bool host_part(const char *text, char host[NAME_ROOM])
{
	size_t n;

	if (*text == '[') {
		text++;
		n = strcspn(text, "]");
	} else {
		n = strcspn(text, ":");
	}
	if (n == 0 || n >= NAME_ROOM)
		return false;
	(void)snprintf(host, NAME_ROOM, "%.*s", (int)n, text);
	return true;
}

static bool is_address(const char *host)
{
	struct in6_addr a;

	return inet_pton(AF_INET, host, &a) == 1 ||
		inet_pton(AF_INET6, host, &a) == 1;
}

/* Returns the full name of this host, or "". */
static const char *full_name(const char *name)
{
	static char full[NAME_ROOM];
	static bool asked;
	const struct addrinfo hints = {
		.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;

	if (asked)
		return full;
	asked = true;
	if (getaddrinfo(name, NULL, &hints, &found) != 0)
		return full;
	if (found->ai_canonname)
		(void)snprintf(full, sizeof(full), "%s", found->ai_canonname);
	freeaddrinfo(found);
	return full;
}

/* Is this a name of this host? */
static bool is_own_name(const char *host)
{
	char name[NAME_ROOM] = "";
	size_t len;

	if (gethostname(name, sizeof(name) - 1) < 0 || !*name)
		return false;
	if (strcasecmp(host, name) == 0)
		return true;
	len = strcspn(name, ".");
	/* ask only for a name that may be the full one */
	if (strncasecmp(host, name, len) != 0 ||
		(host[len] && host[len] != '.'))
		return false;
	return !host[len] || strcasecmp(host, full_name(name)) == 0;
}

bool exporter_host_allowed(const char *text, const char *listen)
{
	char host[NAME_ROOM], own[NAME_ROOM];

	if (!text)
		return true;
	if (!host_part(text, host))
		return false;
	return is_address(host) || strcasecmp(host, "localhost") == 0 ||
		(host_part(listen, own) && strcasecmp(host, own) == 0) ||
		is_own_name(host);
}

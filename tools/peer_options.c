/* SPDX-License-Identifier: MIT */
/* Parses lists of peers and reads their secret; see peer_options.h. */
#include "peer_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "origin/peer/peer.h"

/* Limit for a file of hosts: PEERS_MAX long lines, and as many comments. */
#define PEER_FILE_MAX_BYTES ((size_t)1 << 20)
#define PEER_SECRET_MIN_BYTES 16u
#define PEER_SECRET_MAX_BYTES 4096u

bool peer_list_has(const struct peer_list *list, const char *host)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->host[i], host) == 0)
			return true;
	return false;
}

static int peer_list_one(
	struct peer_list *list, const char *host, struct error *err)
{
	int rc = peer_check_host(host, err);

	if (rc < 0)
		return rc;
	if (peer_list_has(list, host))
		return error_set(err, -EINVAL,
			"'%s' is in the list twice; name each host once", host);
	if (list->n == PEERS_MAX)
		return error_set(err, -EINVAL, "at most %u hosts are supported",
			PEERS_MAX);
	if (ARRAY_ROOM(list->host, list->n, &list->room) < 0)
		return error_set(err, -ENOMEM, "%m");
	list->host[list->n] = strdup(host);
	if (!list->host[list->n])
		return error_set(err, -ENOMEM, "%m");
	list->n++;
	return 0;
}

static int peer_list_words(struct peer_list *list, char *text,
	const char *between, struct error *err)
{
	char *save = NULL, *word = strtok_r(text, between, &save);
	int rc = 0;

	for (; rc == 0 && word; word = strtok_r(NULL, between, &save))
		rc = peer_list_one(list, word, err);
	return rc;
}

/* Read a small regular file, and append a NUL. */
static int peer_file_read(const char *path, size_t max_bytes, bool private,
	char **text, size_t *bytes, struct error *err)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP_FREE char *to = malloc(max_bytes + 2);
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, -errno, "cannot read '%s': %m", path);
	if (!to)
		return error_set(err, -ENOMEM, "%m");
	if (!S_ISREG(st.st_mode))
		return error_set(
			err, -EINVAL, "'%s' is not a regular file", path);
	if (private && (st.st_mode & (S_IRWXG | S_IRWXO)))
		return error_set(err, -EINVAL,
			"other users can access the secret '%s'; run "
			"'chmod 600 %s'",
			path, path);
	while (n <= max_bytes && (got = read(fd, to + n, max_bytes + 1 - n)))
		if (got > 0)
			n += (size_t)got;
		else if (errno != EINTR)
			return error_set(
				err, -errno, "cannot read '%s': %m", path);
	if (n > max_bytes)
		return error_set(err, -EFBIG, "'%s' is longer than %zu bytes",
			path, max_bytes);
	to[n] = '\0';
	*text = steal_ptr(&to);
	*bytes = n;
	return 0;
}

/* Replace comments by blanks; a comment ends with its line. */
static void peer_drop_comments(char *text)
{
	bool comment = false;

	for (; *text; text++) {
		comment = *text != '\n' && (comment || *text == '#');
		if (comment)
			*text = ' ';
	}
}

static int peer_list_file(
	struct peer_list *list, const char *path, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t bytes;
	int rc = peer_file_read(
		path, PEER_FILE_MAX_BYTES, false, &text, &bytes, err);

	if (rc < 0)
		return rc;
	peer_drop_comments(text);
	rc = peer_list_words(list, text, " \t\r\n,", err);
	if (rc == 0 && list->n == 0)
		return error_set(err, -EINVAL,
			"'%s' contains no host; write one per line", path);
	return rc;
}

int peer_list_add(struct peer_list *list, const char *value, struct error *err)
{
	CLEANUP_FREE char *text = NULL;

	if (value[0] == '@')
		return peer_list_file(list, value + 1, err);
	text = strdup(value);
	if (!text)
		return error_set(err, -ENOMEM, "%m");
	if (!*text || *text == ',' || strstr(text, ",,") ||
		text[strlen(text) - 1] == ',')
		return error_set(err, -EINVAL,
			"'%s' is not a list of hosts; write HOST[:PORT],... or "
			"@FILE",
			value);
	return peer_list_words(list, text, ",", err);
}

int peer_list_read_secret(
	struct peer_list *list, const char *path, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t bytes;
	int rc = peer_file_read(
		path, PEER_SECRET_MAX_BYTES, true, &text, &bytes, err);

	if (rc < 0)
		return rc;
	while (bytes > 0 &&
		(text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
		bytes--;
	if (bytes < PEER_SECRET_MIN_BYTES)
		return error_set(err, -EINVAL,
			"the secret in '%s' is shorter than %u bytes; make one "
			"with 'head -c 32 /dev/urandom | base64'",
			path, PEER_SECRET_MIN_BYTES);
	free(list->secret);
	list->secret = steal_ptr(&text);
	list->secret_bytes = bytes;
	return 0;
}

/* -- Which of them is this machine ----------------------------------------- */

/* Copy HOST from "HOST", "HOST:PORT" or "[IPV6]:PORT". */
static void peer_bare_host(const char *host, char *bare, size_t size)
{
	const char *colon = strchr(host, ':');
	size_t n = strlen(host);

	if (host[0] == '[') {
		host++;
		n = strcspn(host, "]");
	} else if (colon && !strchr(colon + 1, ':')) {
		n = (size_t)(colon - host);
	}
	(void)snprintf(bare, size, "%.*s", (int)n, host);
}

static bool peer_is_name(const char *bare)
{
	char name[HOST_NAME_MAX + 1];
	size_t n;

	if (gethostname(name, sizeof(name)) < 0)
		return false;
	name[sizeof(name) - 1] = '\0';
	n = strcspn(name, ".");
	return strcasecmp(bare, name) == 0 ||
		(strlen(bare) == n && strncasecmp(bare, name, n) == 0);
}

static bool peer_is_address(const char *bare, const struct ifaddrs *all)
{
	char text[INET6_ADDRSTRLEN];

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const struct sockaddr *a = i->ifa_addr;
		const void *bits;

		if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
			continue;
		if (a->sa_family == AF_INET)
			bits = &((const struct sockaddr_in *)(const void *)a)
					->sin_addr;
		else
			bits = &((const struct sockaddr_in6 *)(const void *)a)
					->sin6_addr;
		if (inet_ntop(a->sa_family, bits, text, sizeof(text)) &&
			strcmp(text, bare) == 0)
			return true;
	}
	return false;
}

const char *peer_list_self(const struct peer_list *list)
{
	const char *found = NULL;
	struct ifaddrs *all = NULL;
	char bare[PEER_NAME_MAX + 1];
	unsigned n = 0;

	if (getifaddrs(&all) < 0)
		/* without addresses, only names are compared */
		all = NULL;
	for (size_t i = 0; i < list->n; i++) {
		peer_bare_host(list->host[i], bare, sizeof(bare));
		if (!peer_is_name(bare) && !peer_is_address(bare, all))
			continue;
		found = list->host[i];
		n++;
	}
	if (all)
		freeifaddrs(all);
	return n == 1 ? found : NULL;
}

void peer_list_release(struct peer_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->host[i]);
	free(list->host);
	free(list->secret);
	*list = (struct peer_list){0};
}

/* SPDX-License-Identifier: MIT */
/* Secrets and addresses; see service_secret.h. */
#include "loader/service/service_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "loader/service/service_value.h"

#define SECRET_MIN_BYTES 16
#define SECRET_MAX_BYTES 4096

int service_secret_read(const char *path, uint64_t *seed, struct error *err)
{
	char text[SECRET_MAX_BYTES + 1];
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_set(err, -errno,
			"service_secret: cannot open '%s': %m", path);
	if (st.st_mode & 077)
		return error_set(err, -EPERM,
			"service_secret: other users can access '%s'; run "
			"'chmod 600 %s'",
			path, path);
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return error_set(err, -errno,
			"service_secret: cannot read '%s': %m", path);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n < SECRET_MIN_BYTES || n > SECRET_MAX_BYTES)
		return error_set(err, -EINVAL,
			"service_secret: the secret in '%s' must have %d to %d "
			"bytes; make one with 'head -c 32 /dev/urandom | "
			"base64'",
			path, SECRET_MIN_BYTES, SECRET_MAX_BYTES);
	*seed = sample_seed(text, (size_t)n);
	return 0;
}

int service_address(char out[ADDRESS_MAX + 1], const char *host, unsigned port,
	struct error *err)
{
	int len;

	if (host[0] == '/' || strchr(host, ':'))
		len = snprintf(out, ADDRESS_MAX + 1, "%s", host);
	else
		len = snprintf(out, ADDRESS_MAX + 1, "%s:%u", host, port);
	if (len > (int)ADDRESS_MAX)
		return error_set(
			err, -EINVAL, "'%.40s...' is not a host", host);
	return address_check(out, err);
}

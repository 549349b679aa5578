/* SPDX-License-Identifier: MIT */
/* URLs: taken apart, and followed from one to another. Pure functions. */
#ifndef WEB_URL_H
#define WEB_URL_H

#include "web/bytes.h"

#define URL_HOST_MAX 300

struct url {
	char scheme[8];		 /* "http" or "https" */
	char host[URL_HOST_MAX]; /* with the port, if it is not the usual */
	char *path; /* encoded, without slashes at its end; the caller frees */
};

/* -EINVAL for other schemes than http(s) and for user names; -ENOMEM. */
int url_parse(const char *text, struct url *out);

/*
 * Where a Location leads from an URL. -EIO: nowhere that may be followed
 * (another scheme than http and https, https to http, a user name in it).
 */
int url_resolve(const char *from, const char *location, struct bytes *out);

#endif

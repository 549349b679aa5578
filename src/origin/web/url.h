/* SPDX-License-Identifier: MIT */
/* Parses URLs and resolves redirects. Pure functions. */
#ifndef WEB_URL_H
#define WEB_URL_H

#include "origin/web/body.h"

#define URL_HOST_MAX 300

struct url {
	char scheme[8];		 /* "http" or "https" */
	char host[URL_HOST_MAX]; /* with the port, unless it is the default */
	/* encoded; does not end with a slash; the caller frees it */
	char *path;
};

/* Parse a URL. Returns 0; -EINVAL if the scheme is neither http nor https, or
 * if there is a user name; or -ENOMEM. */
int url_parse(const char *text, struct url *out);

/* Resolve a Location header relative to a URL. Returns 0; or -EIO if it must
 * not be followed, because its scheme is neither http nor https, it leads from
 * https to http, or it contains a user name. */
int url_resolve(const char *from, const char *location, struct bytes *out);

#endif

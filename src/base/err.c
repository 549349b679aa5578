/* SPDX-License-Identifier: MIT */
/* Error messages of cold paths; no state, callable from any thread. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list ap;
	int saved = errno;

	if (!err)
		return code;
	errno = -code;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap); /* cut is fine */
	va_end(ap);
	errno = saved;
	return code;
}

int error_wrap(struct error *err, int code, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;
	int n;

	if (!err)
		return code;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg))
		(void)snprintf(err->msg + n, sizeof(err->msg) - (size_t)n,
			": %s", inner);
	return code;
}

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
	if (n < 0 || (size_t)n + 3 > sizeof(err->msg))
		return code;
	memcpy(err->msg + n, ": ", 2);
	n += 2;
	/* What does not fit is cut. */
	memcpy(err->msg + n, inner, sizeof(err->msg) - (size_t)n);
	err->msg[sizeof(err->msg) - 1] = '\0';
	return code;
}

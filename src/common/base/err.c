/* SPDX-License-Identifier: MIT */
/* Error messages of cold paths; no state, callable from any thread. */
#include "common/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/escape.h"

/* Format a message and escape it, because it may quote names, which are
 * arbitrary bytes. A message that is too long is cut. */
static void format_escaped(char *to, size_t size, const char *fmt, va_list ap)
{
	char raw[sizeof(((struct error *)0)->msg)];

	/* a message that is cut is still useful */
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	(void)escape_text(to, size, raw);
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
	va_list ap;
	int saved = errno;

	if (!err)
		return code;
	errno = -code;
	va_start(ap, fmt);
	format_escaped(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	errno = saved;
	return code;
}

int error_wrap(struct error *err, int code, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;
	size_t n;

	if (!err)
		return code;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	format_escaped(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	if (n + 3 > sizeof(err->msg))
		return code;
	memcpy(err->msg + n, ": ", 2);
	n += 2;
	/* If the message does not fit, its end is cut. */
	memcpy(err->msg + n, inner, sizeof(err->msg) - n);
	err->msg[sizeof(err->msg) - 1] = '\0';
	return code;
}

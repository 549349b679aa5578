/* SPDX-License-Identifier: MIT */
/* Makes names and messages safe to print. File names are arbitrary bytes: a raw
 * escape sequence could rewrite a terminal, and a newline could forge a line of
 * a log. Every name that a person sees passes through here. No state; any
 * thread. */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Copy `text` to buf (of at least one byte). Printable UTF-8 stays as it is.
 * Newline, tab and carriage return become \n, \t and \r. Each byte of any other
 * control character, of characters that reorder or hide text, and of bytes that
 * are not UTF-8 becomes \xHH. If the text does not fit, it is cut between
 * characters. A backslash stays single, so that a second escaping changes
 * nothing: a message may quote another message. Returns buf.
 */
const char *escape_text(char *buf, size_t size, const char *text);

/* Like escape_text(), but a backslash becomes two, so that different names stay
 * different. A second call would change the name again. */
const char *escape_name(char *buf, size_t size, const char *name);

/* Print `text`, escaped as by escape_text(). If this fails, ferror(to) is set.
 */
void escape_print(FILE *to, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Makes names and messages safe to print. File names are arbitrary bytes: a raw
 * escape sequence could rewrite a terminal, and a newline could forge a line of
 * a log. Every name shown to a person passes through here. No state; any
 * thread.
 */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/*
 * Copy `text` to buf (of at least one byte). Printable UTF-8 stays as it is;
 * newline, tab and carriage return become \n, \t and \r; every byte of other
 * control characters, of characters that reorder or hide text, and of
 * anything that is not UTF-8 becomes \xHH. A text that does not fit is cut
 * between characters. A backslash stays single, so escaping twice is the same
 * as escaping once: a message may quote another. Returns buf.
 */
const char *escape_text(char *buf, size_t size, const char *text);

/* The same, but a backslash becomes two: different texts stay different, as
 * names that tell things apart have to. Use it once. */
const char *escape_name(char *buf, size_t size, const char *name);

/* Print `text`, escaped in the same way. Errors stay with the stream. */
void escape_print(FILE *to, const char *text);

#endif

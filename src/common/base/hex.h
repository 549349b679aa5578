/* SPDX-License-Identifier: MIT */
/* Digits of hexadecimal numbers. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

/* Returns the value of a digit, in upper or lower case; -1 if it is not a
 * digit. */
static inline int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

#endif

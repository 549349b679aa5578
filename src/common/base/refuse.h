/* SPDX-License-Identifier: MIT */
/*
 * Answers the requests of a FUSE connection that nobody serves any more with an
 * error, so that processes that wait for them in the kernel can end. This is
 * for ordinary users without /sys/fs/fuse, who cannot have the kernel abort the
 * connection. The connection ends with its last descriptor.
 */
#ifndef BASE_REFUSE_H
#define BASE_REFUSE_H

/*
 * The record of requests that were read but not answered begins with
 * REQUEST_SLOTS slots. A slot holds a request as the kernel writes it; the
 * `unique` of an empty slot is 0 (mount/fs/fs_journal.c).
 */
#define REQUEST_SLOTS 8191u
#define REQUEST_SLOT_BYTES 512u

/*
 * Answer all requests with ENOTCONN until none has come for a second, or for 10
 * seconds. `requests` is the descriptor of the record, which need not be valid,
 * or -1. No process that has read from the connection may go on. Does nothing
 * if the connection has ended.
 */
void connection_refuse(int connection, int requests);

#endif

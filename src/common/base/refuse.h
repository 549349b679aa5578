/* SPDX-License-Identifier: MIT */
/*
 * Answers the requests of a FUSE connection that nobody serves any more with an
 * error, where the kernel cannot be asked to abort it: an ordinary user needs
 * /sys/fs/fuse for that. A process that waits in the kernel for one of these
 * requests can end then. The connection ends with its last descriptor.
 */
#ifndef BASE_REFUSE_H
#define BASE_REFUSE_H

/*
 * The record of requests that were read but not answered begins with so many
 * slots, each with a request as the kernel writes it; the `unique` of an empty
 * one is 0 (mount/fs/fs_journal.c).
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

/* SPDX-License-Identifier: MIT */
/*
 * The contexts of SELinux that the kernel gets with a mount. Their names are
 * those of mount(8); NULL: none.
 */
#ifndef FS_CONTEXTS_H
#define FS_CONTEXTS_H

struct fs_contexts {
	const char *context;	 /* context of all files, at all times */
	const char *fscontext;	 /* context of the file system */
	const char *defcontext;	 /* context of files that have none */
	const char *rootcontext; /* context of the mountpoint */
};

#endif

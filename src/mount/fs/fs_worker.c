/* SPDX-License-Identifier: MIT */
/*
 * The data of a thread that answers requests, created and freed with the
 * thread; the kernel's first request; the configuration.
 */
#include "mount/fs/fs_impl.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "mount/store/store.h"

struct fs_worker *fs_worker(struct fs *fs)
{
	struct fs_worker *w = pthread_getspecific(fs->worker_key);

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->scratch = store_scratch_new();
	if (!w->scratch || pthread_setspecific(fs->worker_key, w) != 0) {
		fs_worker_free(w);
		return NULL;
	}
	return w;
}

void fs_worker_free(void *worker)
{
	struct fs_worker *w = worker;

	store_scratch_free(w->scratch);
	free(w->spare);
	free(w->gather);
	free(w);
}

void fs_greeted(struct fs *fs)
{
	fs->greeted = true;
}

void fs_reply_error(fuse_req_t req, int status)
{
	const struct fs *fs = fuse_req_userdata(req);

	COUNT(fs->config.counters, reader_errors);
	(void)fuse_reply_err(req, -status); /* nobody else to tell */
}

const struct fs_config *fs_config(const struct fs *fs)
{
	return &fs->config;
}

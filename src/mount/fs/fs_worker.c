/* SPDX-License-Identifier: MIT */
/* The data of a thread that answers requests. It is created and freed with the
 * thread. Also finds the process to which a reading thread belongs, and caches
 * it. */
#include "mount/fs/fs_impl.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/magic.h"
#include "common/base/proc.h"
#include "mount/store/store.h"

#define REMEMBER_NS NS_PER_S

struct fs_worker *fs_worker(struct fs *fs)
{
	struct fs_worker *w = pthread_getspecific(fs->worker_key);

	if (w)
		return OBJECT(fs_worker, w);
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	MAGIC_BEGIN(w, fs_worker);
	w->scratch = store_scratch_new();
	if (!w->scratch || pthread_setspecific(fs->worker_key, w) != 0) {
		fs_worker_free(w);
		return NULL;
	}
	return w;
}

void fs_worker_free(void *worker)
{
	struct fs_worker *w = OBJECT(fs_worker, worker);

	store_scratch_free(w->scratch);
	free(w->spare);
	free(w->gather);
	MAGIC_END(w);
	free(w);
}

/*
 * Find the process of a reading thread. A request contains the number of the
 * thread, but plans need the number of the process, which /proc shows. A few
 * threads do most reads, so each worker caches the process for a second. Not
 * longer, because the thread may have ended and its number may belong to
 * another thread. If a process is not visible here, the number of its threads
 * is 0.
 */
pid_t fs_process_of(struct fs_worker *w, pid_t thread)
{
	struct fs_reader *r = &w->reader[(unsigned)thread % FS_READERS];
	uint64_t now_ns = clock_now_ns();

	if (thread <= 0)
		return 0;
	if (r->thread != thread || r->until_ns < now_ns)
		*r = (struct fs_reader){
			thread, proc_of_thread(thread), now_ns + REMEMBER_NS};
	return r->process;
}

void fs_reply_error(fuse_req_t req, int status)
{
	const struct fs *fs = OBJECT(fs, fuse_req_userdata(req));

	COUNT(fs->config.counters, reader_errors);
	(void)fuse_reply_err(req, -status); /* a failure cannot be reported */
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds the reading process. A request names the thread, but plans need the
 * process, which /proc tells. A few threads do most reads, so each worker
 * caches the answer for a second. After that the thread may have ended and its
 * number been reused. A thread of a process that we cannot see has number 0.
 */
#include "mount/fs/fs_impl.h"

#include "common/base/clock.h"
#include "common/base/proc.h"

#define REMEMBER_NS NS_PER_S

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

/* SPDX-License-Identifier: MIT */
/*
 * A mount with --analysis, from its start to its end; see subject_impl.h. The
 * kernel keeps the pages of items that hit, as in other mounts, and inotify
 * reports reads of these pages to the daemon afterwards. The pages of other
 * items are dropped after the item was read to its end, so that the next epoch
 * reads the item from the daemon again. Used by the thread that runs the
 * daemon. A thread of a control connection calls subject_refused().
 */
#include "analysis/subject/subject_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/subject/subject.h"
#include "common/base/lock.h"

static void free_scratch(void *scratch)
{
	store_scratch_free(scratch);
}

static void subject_refused(void *arg)
{
	struct subject *s = OBJECT(subject, arg);

	atomic_store_explicit(&s->refused, true, memory_order_relaxed);
}

static int subject_begin(
	void *arg, const struct mount_parts *parts, struct error *err)
{
	struct subject *s = OBJECT(subject, arg);
	const struct kept_config kept = {.manifest = parts->manifest,
		.mountpoint = parts->mountpoint,
		.stays = subject_stays,
		.seen = subject_seen,
		.arg = s};

	s->parts = parts;
	s->kept = kept_new(&kept);
	s->keeper = (struct pages_keeper){.open = kept_open,
		.close = kept_close,
		.add = kept_add,
		.look = kept_look,
		.check = kept_check,
		.bytes = kept_bytes,
		.has = kept_has,
		.kept = s->kept};
	return s->kept ? 0 : error_set(err, -ENOMEM, "cannot mount: %m");
}

/* Fill in the mount's tables of functions. */
static void fill_hooks(struct subject *s)
{
	const struct ctl_command commands[] = {{"mask", command_mask, s},
		{"content", command_content, s}, {"rates", command_rates, s},
		{NULL, NULL, NULL}};

	memcpy(s->commands, commands, sizeof(commands));
	atomic_init(&s->mask.limit, CACHE_MASK_NONE);
	s->read_hook = (struct fs_read_hook){.read = subject_read, .arg = s};
	s->hooks = (struct mount_hooks){.begin = subject_begin,
		.refused = subject_refused,
		.commands = s->commands,
		.mask = &s->mask,
		.read_hook = &s->read_hook,
		.keeper = &s->keeper,
		.whole_max_bytes = SUBJECT_STAYS_MAX,
		.arg = s};
}

static struct subject *subject_new(void)
{
	struct subject *s = calloc(1, sizeof(*s));

	if (!s || pthread_key_create(&s->scratch, free_scratch) != 0) {
		free(s);
		return NULL;
	}
	MAGIC_BEGIN(s, subject);
	lock_init(&s->lock, RANK_SUBJECT);
	fill_hooks(s);
	return s;
}

static void subject_free(struct subject *s)
{
	(void)pthread_mutex_destroy(&s->lock); /* no thread uses it any more */
	(void)pthread_key_delete(s->scratch);
	stand_ins_free(s->stand_ins);
	kept_free(s->kept);
	MAGIC_END(s);
	free(s);
}

int subject_run(const struct mount_options *options, struct error *err)
{
	struct mount_options o = *options;
	struct subject *s = subject_new();
	int rc;

	if (!s)
		return error_set(err, -ENOMEM, "cannot mount: %m");
	o.hooks = &s->hooks;
	rc = daemon_run(&o, err);
	subject_free(s);
	return rc;
}

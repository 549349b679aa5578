/* SPDX-License-Identifier: MIT */
/* For tests of the manifest: a manifest, its events, and names for it. */
#ifndef MANIFEST_FIXTURE_H
#define MANIFEST_FIXTURE_H

#include <string.h>

#include "mount/names/manifest.h"
#include "suite.h"

static struct manifest *m;
/* number of events, indexed by enum manifest_change */
static unsigned events[MANIFEST_REMOVED + 1];
static struct manifest_event last;

static inline void on_event(void *arg, const struct manifest_event *ev)
{
	(void)arg;
	events[ev->change]++;
	last = *ev;
}

static inline void setup(void)
{
	memset(events, 0, sizeof(events));
	ck_assert_int_eq(manifest_new(&m, "/data"), 0);
}

static inline void teardown(void)
{
	manifest_free(m);
}

static inline struct file_entry entry(
	const char *name, enum file_kind kind, uint64_t size, int64_t mtime)
{
	return (struct file_entry){
		.name = name,
		.target = kind == KIND_LINK ? "elsewhere" : NULL,
		.attr =
			{
				.kind = kind,
				.mode = 0644,
				.version = {.size_bytes = size,
					.mtime_ns = mtime},
			},
	};
}

static inline struct node_info put(node_id dir, const char *name,
	enum file_kind kind, uint64_t size, int64_t mtime, bool ref)
{
	struct file_entry e = entry(name, kind, size, mtime);
	struct node_info info;

	ck_assert_int_eq(
		manifest_put(m, dir, &e, 1, ref, &info, on_event, NULL), 0);
	return info;
}

static inline struct node_info put_tagged(const char *name, uint64_t tag)
{
	struct file_entry e = entry(name, KIND_FILE, 10, 5);
	struct node_info info;

	e.attr.version.tag = tag;
	ck_assert_int_eq(
		manifest_put(m, NODE_ROOT, &e, 1, false, &info, on_event, NULL),
		0);
	return info;
}

#endif

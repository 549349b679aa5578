/* SPDX-License-Identifier: MIT */
/* Describes in sentences what limits a mount, for the status and the log. Any
 * thread. */
#include "mount/daemon/mount_impl.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/size.h"

#define FS_LIMITS_MAX 8
#define SENTENCE_MAX (PATH_MAX + 256)
/* No file system has larger blocks, but tmpfs with huge pages. */
#define BLOCK_MAX_BYTES UINT64_C(65536)

static void check_tier(const struct tier_status *s, limit_fn *fn, void *arg)
{
	char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], sentence[SENTENCE_MAX];

	if (s->gone) {
		(void)snprintf(sentence, sizeof(sentence),
			"cache directory '%s' was deleted or moved: unmount, "
			"and mount again",
			s->dir);
		fn(arg, sentence);
	}
	if (s->block_bytes > BLOCK_MAX_BYTES) {
		(void)snprintf(sentence, sizeof(sentence),
			"cache '%s' is on a tmpfs with huge=always, where an "
			"entry takes at least %s; remount the tmpfs with "
			"huge=within_size, then mount again",
			s->dir, size_format(s->block_bytes, a));
		fn(arg, sentence);
	}
	if (s->used_bytes <= s->capacity_bytes)
		return;
	(void)snprintf(sentence, sizeof(sentence),
		"cache '%s' has a size of %s but holds %s, so nothing is "
		"added; mount with a larger size, or clear it",
		s->dir, size_format(s->capacity_bytes, a),
		size_format(s->used_bytes, b));
	fn(arg, sentence);
}

void limits_of_tiers(struct store *store, limit_fn *fn, void *arg)
{
	for (size_t i = 0; i < store_tiers(store); i++) {
		struct tier_status s;

		store_tier_status(store, i, &s);
		check_tier(&s, fn, arg);
	}
}

void limits_of_kernel(struct fs *fs, limit_fn *fn, void *arg)
{
	const char *sentence[FS_LIMITS_MAX];
	size_t n = fs_limits(fs, sentence, FS_LIMITS_MAX);

	for (size_t i = 0; i < n; i++)
		fn(arg, sentence[i]);
}

void limits_of_source(
	const char *source, bool insecure_tls, limit_fn *fn, void *arg)
{
	if (insecure_tls && strncmp(source, "http:", 5) != 0)
		fn(arg,
			"the server's certificate is not verified "
			"(--insecure-tls): anyone on the network path can "
			"replace the data; set AWS_CA_BUNDLE to the "
			"authority's file instead");
}

void limit_report(void *arg, const char *sentence)
{
	struct event e = {.kind = EVENT_LIMIT, .text = sentence};

	event_report(log_sink(arg), &e);
}

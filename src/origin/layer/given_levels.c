/* SPDX-License-Identifier: MIT */
/* Levels for --drop-bits, from an index in a file or at a URL. The tag of the
 * root's version stands for the level, so that names of one level are not used
 * for another. If the names come from an index, the tag of that index does
 * this. */
#include "origin/layer/stack_impl.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/hash.h"

/* The upper 16 bits of a tag that stands for a level. */
#define LEVELS_MARK (UINT64_C(0x1e7e) << 48)

static bool is_mark(uint64_t tag)
{
	return tag >> 48 == LEVELS_MARK >> 48;
}

int levels_open(struct stack *s, struct origin **o, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	struct origin_levels_config config = {
		.drop_bits = s->config.drop_bits,
		.counters = s->counters,
	};
	int rc = s->unreached && !s->config.levels
		? error_set(err, -EIO, "the source does not answer")
		: given_text(s, s->levels, &text, &config.bytes, err);

	config.text = text;
	if (rc == 0 && !s->named)
		s->levels_tag = LEVELS_MARK |
			hash64(text, config.bytes, config.drop_bits) >> 16;
	config.root_tag = s->levels_tag;
	if (rc == 0)
		rc = origin_levels_new(o, *o, &config, err);
	return rc < 0 ? error_wrap(err, rc,
				"cannot use '%s' for --drop-bits; give the "
				"index with --levels FILE",
				s->levels)
		      : 0;
}

bool stack_is_other_level(
	const struct stack *s, const struct file_version *root)
{
	return !s->named && root->tag != s->levels_tag &&
		(s->levels_tag || is_mark(root->tag));
}

void levels_check(struct stack *s)
{
	struct file_attr root;

	s->index_tag = s->levels_tag;
	s->relist = s->names.root(s->names.arg, &root) &&
		stack_is_other_level(s, &root.version);
}

/* SPDX-License-Identifier: MIT */
/* Fuzz target: messages between the jobs of a share. In an accepted message,
 * each text must end and each count must be within its limit; and writing the
 * message again must give the same bytes. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "loader/share/share.h"

static void check_message(const struct share_msg *m)
{
	FUZZ_MUST(m->type > 0 && m->type < SHARE_TYPES);
	if (m->type == SHARE_HELLO) {
		FUZZ_MUST(strlen(m->hello.name) < SHARE_FULL_NAME_MAX);
		FUZZ_MUST(strlen(m->hello.label) < SHARE_LABEL_MAX);
		FUZZ_MUST(m->hello.prints_n <= SHARE_PRINTS_MAX);
	} else if (m->type == SHARE_REFUSE) {
		FUZZ_MUST(strlen(m->refuse.text) < SHARE_TEXT_MAX);
		FUZZ_MUST(m->refuse.error < 0);
	} else if (m->type == SHARE_SEGMENT) {
		FUZZ_MUST(m->segment.slots > 0);
		FUZZ_MUST(m->segment.slot_bytes <=
			m->segment.bytes / m->segment.slots);
	} else if (m->type == SHARE_BATCH) {
		FUZZ_MUST(m->batch.count >= m->batch.fresh);
	} else if (m->type == SHARE_CHANGE) {
		FUZZ_MUST(m->change.q > 0);
	} else if (m->type == SHARE_VIEW) {
		FUZZ_MUST(m->view.jobs_n <= SHARE_MEMBERS_MAX);
		FUZZ_MUST(strlen(m->view.text) < SHARE_TEXT_MAX);
		for (uint32_t i = 0; i < m->view.jobs_n; i++)
			FUZZ_MUST(strlen(m->view.jobs[i].label) <
				SHARE_LABEL_MAX);
	}
}

static void share_one(const uint8_t *data, size_t size)
{
	uint8_t again[2 * FUZZ_MAX_BYTES];
	struct share_msg m;

	if (share_msg_parse(data, size, &m) < 0)
		return;
	check_message(&m);
	FUZZ_MUST(share_msg_print(&m, again, sizeof(again)) == size);
	FUZZ_MUST(memcmp(again, data, size) == 0);
}

static size_t share_seed(unsigned i, uint8_t *buf)
{
	struct share_msg m;

	if (i + 1 >= SHARE_TYPES)
		return 0;
	memset(&m, 0, sizeof(m));
	m.type = (enum share_type)(i + 1);
	if (m.type == SHARE_HELLO)
		m.hello = (struct share_hello){.wish = SHARE_WISH_STEP,
			.step = 5,
			.batch = 64,
			.prints_n = 40,
			.name = "search",
			.label = "train"};
	if (m.type == SHARE_REFUSE)
		m.refuse = (struct share_refuse){
			.error = -ESTALE, .text = "seed differs"};
	if (m.type == SHARE_SEGMENT)
		m.segment = (struct share_segment){
			.bytes = 1 << 20, .slot_bytes = 1 << 18, .slots = 4};
	if (m.type == SHARE_BATCH)
		m.batch = (struct share_batch){
			.step = 7, .slot = 2, .count = 64, .fresh = 32};
	if (m.type == SHARE_CHANGE)
		m.change = (struct share_change){100, 5, 2};
	if (m.type == SHARE_VIEW) {
		m.view.jobs_n = 2;
		m.view.slots = 5;
		m.view.slots_held = 3;
	}
	return share_msg_print(&m, buf, FUZZ_MAX_BYTES);
}

const struct fuzz_target fuzz_share = {"share", share_one, share_seed};

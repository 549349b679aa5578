/* SPDX-License-Identifier: MIT */
/*
 * Claims ranges. The number that memcached gives a value begins anew when
 * memcached restarts, so before a claim is replaced its nonce is compared, too.
 */
#include "loader/work/work_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/lock.h"

/* xorshift64*: good enough to spread the hands over ranges, and to tell claims
 * apart */
static uint64_t hand_random(struct work_hand *h)
{
	uint64_t x = h->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	h->random = x;
	return x * UINT64_C(2685821657736338717);
}

/* Try once to replace this worker's claim. Returns like claim_replace(), or
 * -EAGAIN if the claim has a new number meanwhile. */
static int claim_try(struct asker *board, const char *key, const char *claim,
	const char *text, unsigned ttl_s)
{
	char now[RANGE_STATE_MAX];
	struct service_call c;
	int rc;

	call_get(&c, key, now, sizeof(now));
	rc = calls_make(board, &c, 1);
	if (rc < 0)
		return rc;
	if (c.kind == META_EN)
		return -ENOENT;
	if (c.kind != META_VA || c.bytes != strlen(claim) ||
		memcmp(now, claim, c.bytes) != 0)
		return 0;
	call_put(&c, key, text, strlen(text), CALL_COMPARE, c.cas, ttl_s);
	rc = calls_make(board, &c, 1);
	if (rc < 0)
		return rc;
	if (c.kind == META_EX)
		return -EAGAIN;
	return c.kind == META_NF ? -ENOENT : call_done(&c);
}

/* Replace this worker's claim by a text. Returns 1 if it was replaced, 0 if
 * another process has the range, -ENOENT if nobody has it, or -errno if the
 * board does not answer. */
static int claim_replace(struct asker *board, const char *key,
	const char *claim, const char *text, unsigned ttl_s)
{
	int rc = -EAGAIN;

	/* The scout may renew the claim at the same time, but not again while a
	 * hand of this worker replaces it. */
	for (int tries = 0; rc == -EAGAIN && tries < 3; tries++)
		rc = claim_try(board, key, claim, text, ttl_s);
	return rc == -EAGAIN ? 0 : rc;
}

static void claim_fill(
	struct work_hand *h, const struct work_range *r, struct work_claim *c)
{
	struct range_state s = {.kind = RANGE_CLAIMED, .nonce = hand_random(h)};

	(void)snprintf(s.who, sizeof(s.who), "%s", h->work->id);
	(void)snprintf(s.store, sizeof(s.store), "%s", h->work->config->store);
	*c = (struct work_claim){.range = *r};
	(void)service_range_key(c->key, r->job->id, r->r.name);
	(void)range_state_text(&s, c->text);
}

static void claim_set(struct work_hand *h, const struct work_claim *c)
{
	LOCK_SCOPE(&h->work->lock);

	h->claim = *c;
}

int work_claim(struct work_hand *h, const struct work_range *r)
{
	struct work_claim claim;
	struct service_call c;
	int rc;

	claim_fill(h, r, &claim);
	call_put(&c, claim.key, claim.text, strlen(claim.text), CALL_ADD, 0,
		RANGE_CLAIM_TTL_S);
	rc = calls_make(h->board, &c, 1);
	if (rc < 0)
		/* The board may have the claim even if its answer was lost. */
		rc = claim_replace(h->board, claim.key, claim.text, claim.text,
			RANGE_CLAIM_TTL_S);
	else
		rc = call_done(&c);
	claim.held = rc > 0;
	claim_set(h, &claim);
	return rc == -ENOENT ? 0 : rc;
}

void work_renew(struct work *w)
{
	for (unsigned i = 0; i < w->nhands; i++) {
		struct work_hand *h = &w->hands[i];
		char key[SERVICE_KEY_MAX], text[RANGE_STATE_MAX];
		bool held;
		int rc;

		pthread_mutex_lock(&w->lock);
		held = h->claim.held && !h->claim.lost;
		memcpy(key, h->claim.key, sizeof(key));
		memcpy(text, h->claim.text, sizeof(text));
		pthread_mutex_unlock(&w->lock);
		if (!held)
			continue;
		rc = claim_replace(
			w->board, key, text, text, RANGE_CLAIM_TTL_S);
		pthread_mutex_lock(&w->lock);
		/* The hand may have another claim by now */
		if (rc == 0 && strcmp(h->claim.text, text) == 0)
			h->claim.lost = true;
		pthread_mutex_unlock(&w->lock);
	}
}

bool work_is_lost(struct work_hand *h)
{
	LOCK_SCOPE(&h->work->lock);

	return h->claim.lost;
}

/* Note that the scout must not renew the claim any more, because the hand is
 * going to replace it. */
static void claim_release(struct work_hand *h)
{
	LOCK_SCOPE(&h->work->lock);

	h->claim.held = false;
}

/* Say that the range is done, although the claim is gone: it has expired, a
 * reader has deleted it, or the board has restarted. Returns like work_done().
 */
static int done_anew(struct work_hand *h, const char *text)
{
	bool known;
	struct service_call c;
	int rc;

	if (!work_is_needed(h->board, &h->claim.range, &known))
		return known ? 0 : -EHOSTDOWN;
	call_put(&c, h->claim.key, text, strlen(text), CALL_ADD, 0,
		RANGE_DONE_TTL_S);
	rc = calls_make(h->board, &c, 1);
	return rc < 0 ? rc : call_done(&c);
}

int work_done(struct work_hand *h, uint32_t mask, uint32_t ms)
{
	struct range_state s = {.kind = RANGE_DONE, .mask = mask, .ms = ms};
	char text[RANGE_STATE_MAX];
	bool known;
	struct service_call c;
	int rc;

	claim_release(h);
	(void)snprintf(s.store, sizeof(s.store), "%s", h->work->config->store);
	(void)range_state_text(&s, text);
	rc = claim_replace(
		h->board, h->claim.key, h->claim.text, text, RANGE_DONE_TTL_S);
	if (rc == -ENOENT)
		rc = done_anew(h, text);
	if (rc != 1)
		return rc;
	/* A reader that passed the range while it was a claim could not delete
	 * it, so delete it here. */
	if (work_is_needed(h->board, &h->claim.range, &known) || !known)
		return 1;
	call_delete(&c, h->claim.key, 0);
	/* if this fails, the state expires */
	(void)calls_make(h->board, &c, 1);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A listing of a bucket, its ranges and their pages; private to s3_list.c and
 * s3_list_page.c. */
#ifndef OBJECT_S3_RANGE_IMPL_H
#define OBJECT_S3_RANGE_IMPL_H

#include "origin/object/s3_list_impl.h"
#include "origin/object/s3_page_impl.h"

struct s3_listing {
	struct object_origin *r;
	struct origin_list *l;
	char *prefix;	      /* of the keys, the origin's own included */
	bool unordered;	      /* a kind of bucket that sorts nothing */
	bool probe;	      /* one key is enough */
	pthread_mutex_t lock; /* guards the rest; over the loops' locks */
	unsigned ranges;      /* ranges that are running */
	uint64_t pages, keys;
	uint64_t keys_max;  /* set once */
	uint64_t page_keys; /* in the fullest page */
	bool sizeless;	    /* there was a key without a size */
	int status;
	bool deaf; /* the server does not know start-after */
	struct split_seen seen;
};

struct s3_range {
	struct call call;
	struct s3_listing *g;
	struct loop *loop;
	struct post begin;
	struct s3_range *other; /* the next range that is to begin */
	struct s3_page page;
	struct file_entry *entries;
	size_t room;
	unsigned tries;
	/* Pages since `reached` grew; those with old keys weigh more. */
	unsigned still;
	uint64_t keys;		    /* so far */
	char from[S3_KEY_MAX + 1];  /* where it began */
	char after[S3_KEY_MAX + 1]; /* keys are greater; "" for all */
	char end[SPLIT_POINT_MAX + S3_KEY_MAX]; /* and not greater; "" */
	char reached[S3_KEY_MAX + 1];		/* the greatest that was sent */
	char token[2048];
};

/* The result of taking in one page. */
struct page_progress {
	size_t n;		    /* entries */
	uint64_t new;		    /* keys after the last page's */
	bool over;		    /* a key beyond the range's end came */
	bool further;		    /* a key that is greater than all before */
	char since[S3_KEY_MAX + 1]; /* where the last page ended */
};

/* Lock held: take in the page that has come, and hand its names up. -E2BIG:
 * there are more keys than memory has room for. */
int range_take_page(struct s3_range *x, struct page_progress *p);

/*
 * Does the listing stand still? The server says that more follows, but its
 * pages get no further, so the listing would never end. Some pages without new
 * keys are allowed: some servers send pages without keys where many were
 * deleted, and a server that does not know start-after gets to new keys later.
 * If the listing is in no order, any key counts as progress.
 */
bool range_stands_still(struct s3_range *x, const struct page_progress *p);

#endif

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
	char *prefix;	/* prefix of the keys, with the origin's own */
	bool unordered; /* a kind of bucket that does not sort keys */
	bool probe;	/* one key is enough to end the listing */
	/* guards the rest; rank: above the loops' locks */
	pthread_mutex_t lock;
	unsigned ranges; /* ranges that are running */
	uint64_t pages, keys;
	uint64_t keys_max;  /* set once */
	uint64_t page_keys; /* number of keys in the fullest page */
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
	struct s3_range *other; /* links ranges that are to begin */
	struct s3_page page;
	struct file_entry *entries;
	size_t room;
	unsigned tries;
	/* Pages since `reached` grew; pages with old keys count more. */
	unsigned still;
	uint64_t keys;		   /* number of keys so far */
	char from[S3_KEY_MAX + 1]; /* keys of the range are greater than this */
	/* keys of the next page are greater; "": all */
	char after[S3_KEY_MAX + 1];
	/* keys are not greater; "": no end */
	char end[SPLIT_POINT_MAX + S3_KEY_MAX];
	char reached[S3_KEY_MAX + 1]; /* the greatest key received */
	char token[2048];
};

/* The result of taking in one page. */
struct page_progress {
	size_t n;     /* number of entries */
	uint64_t new; /* number of keys after those of the last page */
	bool over;    /* a key beyond the range's end came */
	bool further; /* a key came that is greater than all before */
	char since[S3_KEY_MAX + 1]; /* where the last page ended */
};

/* Requires the lock. Add the page that has come to the listing, and hand its
 * names up. Returns -E2BIG if there are more keys than memory has room for. */
int range_take_page(struct s3_range *x, struct page_progress *p);

/*
 * Does the listing make no progress? The server says that more follows, but its
 * pages get no further, so the listing would never end. Some pages without new
 * keys are allowed: some servers send pages without keys where many were
 * deleted, and a server that does not know start-after gets to new keys later.
 * If the listing is in no order, any key counts as progress.
 */
bool range_stands_still(struct s3_range *x, const struct page_progress *p);

#endif

/* SPDX-License-Identifier: MIT */
/* A listing of a bucket, its ranges and their pages. Private to s3_list.c and
 * s3_list_page.c. */
#ifndef OBJECT_S3_RANGE_IMPL_H
#define OBJECT_S3_RANGE_IMPL_H

#include "origin/object/s3_list_impl.h"
#include "origin/object/s3_page_impl.h"

struct s3_listing {
	struct object_origin *r;
	struct origin_list *l;
	char *prefix;	/* prefix of the keys, including that of the origin */
	bool unordered; /* the bucket is of a kind that does not sort keys */
	bool probe;	/* one key is enough to end the listing */
	/* guards all members below; taken before the loops' locks */
	pthread_mutex_t lock;
	unsigned ranges; /* number of ranges that are running */
	uint64_t pages, keys;
	uint64_t keys_max;  /* set once */
	uint64_t page_keys; /* number of keys in the fullest page */
	bool sizeless;	    /* a key without a size was seen */
	int status;
	bool deaf; /* the server ignores start-after */
	struct split_seen seen;
};

struct s3_range {
	struct call call;
	struct s3_listing *g;
	struct loop *loop;
	struct post begin;
	/* next range in a list of ranges that are to begin */
	struct s3_range *other;
	struct s3_page page;
	struct file_entry *entries;
	size_t room;
	unsigned tries;
	/* Number of pages since `reached` grew; pages with old keys count more.
	 */
	unsigned still;
	uint64_t keys; /* number of keys so far */
	/* all keys of the range are greater than this */
	char from[S3_KEY_MAX + 1];
	/* the next page gets keys greater than this; "": all keys */
	char after[S3_KEY_MAX + 1];
	/* no key of the range is greater than this; "": no end */
	char end[SPLIT_POINT_MAX + S3_KEY_MAX];
	char reached[S3_KEY_MAX + 1]; /* the greatest key received so far */
	char token[2048];
};

/* The result of adding one page to the listing. */
struct page_progress {
	size_t n; /* number of entries for the batch */
	/* number of keys that are greater than those of the last page */
	uint64_t new;
	bool over;    /* there was a key beyond the end of the range */
	bool further; /* there was a key greater than all before */
	char since[S3_KEY_MAX + 1]; /* the last key of the last page */
};

/* Requires the lock. Add the page that has come to the listing, and pass its
 * names to the caller of the listing. Returns 0, or -E2BIG if there are more
 * keys than memory has room for. */
int range_take_page(struct s3_range *x, struct page_progress *p);

/*
 * Does the listing make no progress? If the server says that more follows, but
 * its pages contain nothing new, the listing would never end. Some pages
 * without new keys are allowed: some servers send pages without keys where many
 * keys were deleted, and a server that ignores start-after comes to new keys
 * later. If the listing is not sorted, any key counts as progress.
 */
bool range_stands_still(struct s3_range *x, const struct page_progress *p);

#endif

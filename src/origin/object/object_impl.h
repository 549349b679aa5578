/* SPDX-License-Identifier: MIT */
/* The structs and functions of this room: the remote origin, its location, and
 * the *call*: one request, including its repetitions (after throttling, with
 * renewed credentials, in another region, with a corrected clock, after a
 * redirect). A call runs on one loop; other threads reach it only by posts. */
#ifndef OBJECT_IMPL_H
#define OBJECT_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/base/events.h"
#include "common/base/magic.h"
#include "origin/origin.h"
#include "origin/web/web.h"
#include "origin/object/object.h"

#define OBJECT_HOST_MAX URL_HOST_MAX
#define OBJECT_REGION_MAX 64

struct object_origin {
	struct origin base;
	uint32_t magic;
	/* Set once. */
	struct loops *loops;
	struct counters *counters;
	struct creds *creds; /* NULL: requests are not signed */
	bool s3, payer, path_style, aws;
	char *scheme; /* "http" or "https" */
	char *bucket; /* used for s3 only */
	/* prefix of all keys: "" or a text that ends with '/'; not encoded */
	char *prefix;
	char *base_path; /* encoded; does not end with '/' */
	uid_t uid;
	gid_t gid;
	struct loop *late_loop;
	struct post late; /* answers the requests in `no_memory` */
	const struct event_sink *events;

	/* At the start of a mount only one request is sent, and its thread
	 * waits for the answer. During this time nobody reads the log, and no
	 * layer above repeats the request. Relaxed. */
	atomic_bool alone;
	/* Properties of an http server, learned from its answers; relaxed. dav:
	 * it answered PROPFIND by WebDAV; no_dav: it did not; no_head: it
	 * refuses HEAD; untagged: files have no tags. */
	atomic_bool dav, no_dav, no_head, untagged;
	/* number of directories not shown since the root was listed */
	atomic_uint too_deep;
	_Atomic int64_t skew_s; /* the server's clock minus ours; relaxed */
	/* Guards all members below, and the object to which a read's priv
	 * points. Taken before the loops' locks. */
	pthread_mutex_t lock;
	/* with the port, unless it is the default */
	char host[OBJECT_HOST_MAX];
	char region[OBJECT_REGION_MAX];
	struct error last; /* reason of the last failure, for messages */
	int last_status;   /* the status to which `last` belongs, or 0 */
	/* one bit for each enum hidden that was logged */
	unsigned told_hidden;
	char *witness; /* path of the last file whose size was returned */
	/* requests to be answered with -ENOMEM, linked by priv */
	struct origin_request *no_memory;
};

/* Read a flag of the origin; all flags are relaxed. */
static inline bool object_flag(const atomic_bool *flag)
{
	return atomic_load_explicit(flag, memory_order_relaxed);
}

static inline void object_set_flag(atomic_bool *flag, bool value)
{
	atomic_store_explicit(flag, value, memory_order_relaxed);
}

struct call;

struct call_ops {
	/* Called for an answer of 2xx, like the functions of transfer_ops. Both
	 * may be NULL. */
	int (*head)(struct call *c, const struct head *h);
	int (*data)(struct call *c, const void *data, size_t len);
	void (*slow)(struct call *c);
	/* The call has ended. status 0: an answer of 2xx is complete; or
	 * -errno. */
	void (*done)(struct call *c, int status);
};

/* Limit for error documents. Useful ones are shorter. */
#define CALL_ERROR_MAX 16384u

struct call {
	struct transfer t;
	struct object_origin *r;
	const struct call_ops *ops;
	const char *method;
	struct bytes path;  /* encoded, begins with '/' */
	struct bytes query; /* canonical; "" if there is none */
	struct bytes more;  /* further lines of the header */
	const char *body;   /* the body to send; NULL for s3 */
	size_t body_len;
	struct bytes error; /* the body of an answer that is not 2xx */
	/* http: URL to which the call was redirected */
	struct bytes redirect;
	char code[64];	   /* code of the last S3 error document, or "" */
	const char *words; /* the meaning of that code, or NULL */
	bool heads_only;   /* read the body only if it is short */
	/* Numbers of repetitions so far, by reason. */
	unsigned throttled, renewed, moved, skewed, again;
	/* generation of the credentials that signed the call */
	unsigned generation;
	/* the region to which the call was sent */
	char region[OBJECT_REGION_MAX];
};

/* Returns the HTTP status of the call's answer. */
static inline unsigned call_status(const struct call *c)
{
	return c->t.head.code;
}

/* Returns the loop of the call. */
static inline struct loop *call_loop(const struct call *c)
{
	return c->t.loop;
}

/* Returns the head of the call's answer; see struct transfer. */
static inline const struct head *call_answer(const struct call *c)
{
	return &c->t.head;
}

/* Returns the Content-Type of the call's answer. */
static inline const char *call_type(const struct call *c)
{
	return c->t.head.type;
}

/* End the call if no byte comes for this time; 0: the default time. Call it
 * before the start. */
static inline void call_set_stall(struct call *c, unsigned seconds)
{
	c->t.stall_s = seconds;
}

/* Initialise a call of zeros. The caller then sets path, query and `more`. */
void call_init(struct call *c, struct object_origin *r,
	const struct call_ops *ops, const char *method);

/* Start the call. This must run on the thread of the loop `l`. */
void call_start(struct loop *l, struct call *c);

/* End the call without calling done(). This must run on the thread of its loop.
 */
void call_cancel(struct call *c);
void call_release(struct call *c);

/* Set the path to that of the source itself; for s3 this is the path of the
 * bucket. */
void call_base_path(struct call *c);

/* Set the path to that of a complete key, and encode it. */
void call_key(struct call *c, const char *key);

/* Set the path to that of a key or of a name below the source, and encode it.
 */
void call_path(struct call *c, const char *name);

/* Add "name=value" to the query. The caller must add names in sorted order. */
void call_query(struct call *c, const char *name, const char *value);

/* -- call_verdict.c: what an answer that is not 2xx means ------------------ */

/* Handle an answer. Returns true if the call was started again. Otherwise sets
 * *status to the status with which the call ends, and returns false. */
bool answer_repeats(struct call *c, int *status);

/* Handle a failed connection. Returns true if the call was started again. */
bool answer_failed(struct call *c, int status);

/* -- object_shared.c: what requests share ---------------------------------- */

/* Choose a loop for the next request. */
struct loop *object_loop(struct object_origin *r);

struct file_attr object_dir_attr(const struct object_origin *r);
struct file_attr object_file_attr(const struct object_origin *r, uint64_t size,
	int64_t mtime_ns, uint64_t tag);

/* Does the answer come from a proxy or a login page? It does if the file had a
 * version and the answer has none. */
static inline bool object_is_foreign(
	const struct file_version *known, const struct head *h)
{
	return (known->tag || known->mtime_ns) && !h->tag && !h->modified_ns;
}

/* Returns the key of a path, or NULL if memory is short. The caller frees it.
 */
char *object_key(const struct object_origin *r, const char *path);

/* Are listings of this bucket unsorted? */
bool object_lists_unordered(const struct object_origin *r);

/* Store the reason of a failure and its remedy. object_last_error() returns it,
 * and origin_explain() does so for this status. */
void object_words(struct object_origin *r, int status, const char *words);

/* object_witness() returns the path of the last file whose size the server
 * returned, or NULL if there was none. The caller frees it.
 * object_set_witness() owns `path` from then on, which may be NULL. */
char *object_witness(struct object_origin *r);
void object_set_witness(struct object_origin *r, char *path);

/* The reason why a name is not shown. */
enum hidden {
	HIDDEN_NAME,
	HIDDEN_SIZE,
	HIDDEN_FAILS,
	HIDDEN_DEEP,
	HIDDEN_ORDER,
};

/* Count a name that is not shown. The first one for each reason is logged. */
void object_hidden(struct object_origin *r, const char *key, enum hidden why);

/* Have another thread answer with -ENOMEM. Uses the request's priv. */
void object_late(struct object_origin *r, struct origin_request *q);
void object_answer_late(struct post *p);

/* Requires the lock. Was the request passed to object_late(), and has it not
 * been answered yet? */
bool object_is_late(
	const struct object_origin *r, const struct origin_request *q);

/* -- object_probe.c -------------------------------------------------------- */

/* Limit for each wait for a store at a start: if a mount cannot work, it has to
 * fail within 5 s. */
#define OBJECT_WAIT_NS (9 * NS_PER_S / 2)

/* Get the reason why a request ended with this status. It is never "". */
void object_reason(struct origin *o, int status, struct error *why);

/* -- object_read.c --------------------------------------------------------- */

struct origin_file *object_file_new(struct origin *o, const char *path);
void object_file_free(struct origin *o, struct origin_file *f);
void object_read(struct origin *o, struct origin_read *r);
void object_abandon(struct origin *o, struct origin_read *r);

static inline struct object_origin *object_of(struct origin *o)
{
	return OBJECT(object_origin, o);
}

#endif

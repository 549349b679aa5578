/* SPDX-License-Identifier: MIT */
/*
 * The public functions of the library. They check their arguments, copy structs
 * in the size that the caller was compiled with, and keep error messages. A
 * batch source does the rest. Called by any thread of the user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/magic.h"
#include "common/base/trace.h"
#include "loader/dataset/annotations.h"
#include "loader/engine/engine.h"
#include "loader/api/loader_impl.h"
#include "loader/share/share_member.h"

struct refrain_loader {
	uint32_t magic;
	/* Set once. */
	struct batch_source *source;
	pid_t pid;
};

/* The calling thread's copy of its last message, and the loader that wrote the
 * message. */
static __thread struct error message_copy;
static __thread const struct refrain_loader *message_of;

/* Set the message for a NULL in place of `what`. Returns -EINVAL. `l` may be
 * NULL. */
static int missing(const struct refrain_loader *l, const char *what)
{
	struct error *err = settings_error();

	if (l) {
		message_of = l;
		err = &message_copy;
	}
	return error_set(err, -EINVAL, "%s must not be NULL", what);
}

/* May the source be queried? Returns 0, -EINVAL if the loader is NULL, -ECHILD
 * after a fork, or -ENOSYS if the source can only produce batches. */
static int ask(const struct refrain_loader *l)
{
	if (!l)
		return missing(NULL, "the loader");
	(void)OBJECT(refrain_loader, (void *)(uintptr_t)l);
	if (l->pid != getpid())
		return -ECHILD;
	return l->source->ops->settings ? 0 : -ENOSYS;
}

static const struct dataset *dataset_of(const struct refrain_loader *l)
{
	return l && l->source->ops->dataset ? l->source->ops->dataset(l->source)
					    : NULL;
}

/* -- Open and close -------------------------------------------------------- */

int loader_over(struct refrain_loader **out, struct batch_source *source)
{
	struct refrain_loader *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	message_of = NULL;
	MAGIC_BEGIN(l, refrain_loader);
	l->source = source;
	l->pid = getpid();
	*out = l;
	return 0;
}

/* Open a loader with a share. The struct of a program that was compiled with an
 * older header may be too short to have the members for it. */
static int open_shared(struct batch_source **out,
	const struct refrain_config *config, struct error *err)
{
	struct refrain_config c;

	refrain_config_init(&c);
	memcpy(&c, config, config->size < sizeof(c) ? config->size : sizeof(c));
	c.size = sizeof(c);
	return shared_open(out, &c, err);
}

int refrain_open(
	struct refrain_loader **out, const struct refrain_config *config)
{
	struct error *err = settings_error();
	struct batch_source *source;
	struct settings s;
	int rc;

	if (!out)
		return missing(NULL, "out");
	*out = NULL;
	if (!config)
		return missing(NULL, "config");
	rc = settings_init(&s, config, err);
	if (rc == 0)
		rc = s.c.share ? open_shared(&source, config, err)
			       : engine_open(&source, config, NULL, err);
	if (rc < 0)
		return rc;
	rc = loader_over(out, source);
	if (rc < 0) {
		(void)batch_close(source);
		return error_set(err, rc, "no memory for a loader");
	}
	return 0;
}

int refrain_close(struct refrain_loader *l)
{
	int rc;

	if (!l || OBJECT(refrain_loader, l)->pid != getpid())
		return 0;
	rc = batch_close(l->source);
	/* If closing fails, calls that hang may still use the loader, so it is
	 * not freed. */
	if (rc < 0)
		return rc;
	MAGIC_END(l);
	free(l);
	return rc;
}

/* -- Batches --------------------------------------------------------------- */

int refrain_next(struct refrain_loader *l, const struct refrain_batch **out,
	int timeout_ms)
{
	struct lent_batch *b;
	int rc;

	if (!out)
		return missing(l, "out");
	*out = NULL;
	if (!l)
		return missing(l, "the loader");
	if (OBJECT(refrain_loader, l)->pid != getpid())
		return -ECHILD;
	message_of = NULL;
	TRACE(ask, l);
	rc = batch_next(l->source, &b, timeout_ms);
	if (rc == 1)
		*out = &b->batch;
	TRACE(next, *out, (int64_t)rc, rc == 1 ? b->batch.step : 0);
	return rc;
}

void refrain_release(const struct refrain_batch *b)
{
	if (!b)
		return;
	TRACE(release, b, b->step, b->data_bytes);
	batch_release(OBJECT(lent_batch,
		CONTAINER_OF((uintptr_t)b, struct lent_batch, batch)));
}

/* Set the loader's message, which the calling thread can get until its next
 * call. */
static int too_little_room(struct refrain_loader *l, size_t needed, uint32_t n)
{
	message_of = l;
	return error_set(&message_copy, -ENOSPC,
		"the batch needs room for %zu bytes and %u labels", needed, n);
}

int refrain_next_into(struct refrain_loader *l, void *data, size_t data_bytes,
	int64_t *labels, size_t label_count, int timeout_ms)
{
	const struct refrain_batch *b;
	const struct settings *s;
	int rc = ask(l);
	size_t needed;

	if (rc < 0)
		return rc;
	if (!data)
		return missing(l, "data");
	s = l->source->ops->settings(l->source);
	if (s->fields.count) {
		message_of = l;
		return error_set(&message_copy, -EINVAL,
			"fields is set: their columns would be lost; use "
			"refrain_next()");
	}
	needed = s->c.batch * s->sample_bytes;
	if (data_bytes < needed || (labels && label_count < s->c.batch))
		return too_little_room(l, needed, s->c.batch);
	rc = refrain_next(l, &b, timeout_ms);
	if (rc <= 0)
		return rc;
	memcpy(data, b->data, b->data_bytes);
	if (labels)
		memcpy(labels, b->labels, b->count * sizeof(*labels));
	rc = (int)b->count;
	refrain_release(b);
	return rc;
}

int refrain_fd(struct refrain_loader *l)
{
	if (!l)
		return missing(l, "the loader");
	return l->pid == getpid() ? batch_fd(l->source) : -ECHILD;
}

/* -- Queries --------------------------------------------------------------- */

uint64_t refrain_examples(struct refrain_loader *l)
{
	return dataset_of(l) ? dataset_count(dataset_of(l)) : 0;
}

uint64_t refrain_classes(struct refrain_loader *l)
{
	return dataset_of(l) ? dataset_classes(dataset_of(l)) : 0;
}

uint64_t refrain_steps_left(struct refrain_loader *l)
{
	if (ask(l) < 0)
		return 0;
	return l->source->ops->steps_left(l->source);
}

uint64_t refrain_step(struct refrain_loader *l)
{
	if (ask(l) < 0)
		return 0;
	return l->source->ops->step(l->source);
}

uint64_t refrain_epoch_end(struct refrain_loader *l, uint64_t epoch)
{
	if (ask(l) < 0)
		return 0;
	return l->source->ops->epoch_end(l->source, epoch);
}

int refrain_fresh(struct refrain_loader *l, uint64_t f, uint64_t *index)
{
	int rc = ask(l);

	if (rc < 0 || !index)
		return rc < 0 ? rc : -EINVAL;
	return l->source->ops->fresh(l->source, f, index);
}

int refrain_failure_get(struct refrain_loader *l, struct refrain_failure *out)
{
	struct refrain_failure failure;
	size_t room;
	int rc = ask(l);

	if (rc < 0)
		return rc;
	if (!out)
		return missing(l, "out");
	l->source->ops->failure(l->source, &failure);
	room = out->size < sizeof(*out) ? out->size : sizeof(*out);
	failure.size = room;
	memcpy(out, &failure, room);
	return failure.error != 0;
}

const char *refrain_class_name(
	struct refrain_loader *l, int64_t label, size_t *bytes)
{
	if (label < 0 || (uint64_t)label >= refrain_classes(l))
		return NULL;
	return dataset_class_name(dataset_of(l), (uint64_t)label, bytes);
}

const char *refrain_annotation_class(
	struct refrain_loader *l, int64_t label, size_t *bytes)
{
	const struct dataset *ds = ask(l) < 0 ? NULL : dataset_of(l);
	const struct annotations *a = ds ? dataset_annotations(ds) : NULL;
	const char *name;

	if (!a || label < 0 || label > UINT32_MAX)
		return NULL;
	name = annotations_class(a, (uint32_t)label);
	if (name && bytes)
		*bytes = strlen(name);
	return name;
}

const char *refrain_path(struct refrain_loader *l, uint64_t index)
{
	struct example example;

	if (index >= refrain_examples(l))
		return NULL;
	dataset_example(dataset_of(l), index, &example);
	return example.name;
}

const char *refrain_file(struct refrain_loader *l, uint64_t index)
{
	struct example example;

	if (index >= refrain_examples(l))
		return NULL;
	dataset_example(dataset_of(l), index, &example);
	return example.file;
}

const char *refrain_part_file(struct refrain_loader *l, uint64_t index,
	uint32_t part, uint32_t *dataset)
{
	const struct dataset *ds;
	struct example example;

	if (index >= refrain_examples(l))
		return NULL;
	ds = dataset_of(l);
	if (part >= dataset_parts(ds) ||
		!dataset_part(ds, index, part, &example))
		return NULL;
	if (dataset)
		*dataset = dataset_joined_at(ds, index);
	return example.file;
}

static void all_stats(struct refrain_loader *l, struct refrain_stats *out)
{
	struct dataset_skipped skipped;

	l->source->ops->stats(l->source, out);
	dataset_skipped(dataset_of(l), &skipped);
	out->skipped_files = skipped.files;
	out->tail_tokens = dataset_tail_tokens(dataset_of(l));
	out->skipped_first = skipped.first_file;
	out->empty_classes = skipped.classes;
	out->empty_first = skipped.first_class;
}

int refrain_stats_get(struct refrain_loader *l, struct refrain_stats *out)
{
	struct refrain_stats all;
	size_t size;
	int rc = ask(l);

	if (rc < 0)
		return rc;
	if (!out)
		return missing(l, "out");
	size = out->size < sizeof(all) ? out->size : sizeof(all);
	if (size < sizeof(out->size))
		return -EINVAL;
	all_stats(l, &all);
	memcpy(out, &all, size);
	return 0;
}

int refrain_stats_json(struct refrain_loader *l, char *buf, size_t size)
{
	struct refrain_stats all;
	int rc = ask(l);

	if (rc < 0)
		return rc;
	if (!buf)
		return missing(l, "buf");
	all_stats(l, &all);
	return stats_print(&all, buf, size);
}

int refrain_save(struct refrain_loader *l, void *buf, size_t size)
{
	int rc = ask(l);

	message_of = NULL;
	if (rc < 0)
		return rc;
	if (!buf)
		return missing(l, "buf");
	return l->source->ops->save(l->source, buf, size);
}

int refrain_save_at(
	struct refrain_loader *l, uint64_t step, void *buf, size_t size)
{
	int rc = ask(l);

	message_of = NULL;
	if (rc < 0)
		return rc;
	if (!buf)
		return missing(l, "buf");
	return l->source->ops->save_at(l->source, step, buf, size);
}

int refrain_echo_log(struct refrain_loader *l, char *buf, size_t size)
{
	int rc = ask(l);

	if (rc < 0)
		return rc;
	if (!buf)
		return missing(l, "buf");
	return l->source->ops->echo_log(l->source, buf, size);
}

int refrain_memory(struct refrain_loader *l, const void **base, size_t *bytes)
{
	int rc = ask(l);

	if (!base || !bytes)
		return missing(l, base ? "bytes" : "base");
	*base = NULL;
	*bytes = 0;
	message_of = NULL;
	if (rc < 0)
		return rc;
	if (l->source->ops->memory)
		return l->source->ops->memory(l->source, base, bytes);
	message_of = l;
	return error_set(&message_copy, -ENODATA,
		"the loader has no share, so its batches are not in one block "
		"of memory");
}

const char *refrain_message(struct refrain_loader *l)
{
	if (!l)
		return settings_error()->msg;
	if (l->pid != getpid())
		return "the loader was opened before fork(): open another one "
		       "in this process";
	if (message_of != l)
		batch_message(l->source, &message_copy);
	return message_copy.msg;
}

/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a job as text. The text contains everything that
 * determines the pixels of the samples and their order. A reader puts it on the
 * board, and a worker prepares samples by it. The hash of the text is the name
 * of the job, so two jobs with different texts never share a sample. The text
 * leaves out members that concern only the trainer: a reader applies type,
 * layout, mean, std and cutout itself, to the samples that it has received, and
 * its record contains rank, world, batch and echo factor. Pure functions.
 */
#ifndef SERVICE_CONF_H
#define SERVICE_CONF_H

#include "common/base/hash.h"
#include "loader/core/settings.h"
#include "loader/service/service_names.h"

/* Room for the text, NUL included. */
#define SERVICE_CONF_MAX 2048u

struct service_conf {
	/* The name under which the workers know the dataset */
	char dataset[SERVICE_ID_MAX + 1];
	/* number of examples and fingerprint of the dataset */
	uint64_t examples, fingerprint;
	/* A hash of samples of built-in images (service_print.h). A process
	 * that decodes differently has another one */
	uint64_t print;
};

/*
 * Write the text. Returns its length, or -EOPNOTSUPP with err set if workers
 * cannot prepare samples of this configuration, because it has callbacks, raw
 * records, or examples with several fields.
 */
int service_conf_text(const struct settings *s, const struct service_conf *conf,
	char text[SERVICE_CONF_MAX], struct error *err);

/* Returns the name of the job with this text. */
struct hash128 service_job(const char *text, size_t bytes);

/*
 * Parse a text from a board, and set the configuration of a loader that makes
 * the u8 pixels of the job's samples. Returns 0; -EBADMSG if the text is not a
 * configuration; or -EOPNOTSUPP if this library would write another text for
 * the configuration, because then it might make other samples, too.
 */
int service_conf_parse(const char *text, size_t bytes,
	struct service_conf *conf, struct settings *s, struct error *err);

#endif

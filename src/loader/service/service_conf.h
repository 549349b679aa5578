/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a job as text: all that the pixels of its samples and
 * their order depend on. A reader puts it on the board; a worker prepares
 * samples by it. The hash of the text is the name of the job, so jobs that
 * differ in anything of it never share a sample. Members that only concern the
 * trainer are not in it: type, layout, mean, std and cutout are applied to the
 * samples that it has pulled, and rank, world, batch and echo factor are in the
 * record of each reader. Pure functions.
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
	uint64_t examples, fingerprint; /* of the dataset */
	/* A hash of samples of built-in images: whoever decodes differently has
	 * another one */
	uint64_t print;
};

/*
 * Write the text. Returns its length, or -EOPNOTSUPP with err set if samples of
 * this configuration cannot be prepared by others: callbacks, raw records, and
 * examples with several fields.
 */
int service_conf_text(const struct settings *s, const struct service_conf *conf,
	char text[SERVICE_CONF_MAX], struct error *err);

/* The name of the job with this text. */
struct hash128 service_job(const char *text, size_t bytes);

/*
 * Parse a text that a board has, and set the configuration of a loader that
 * makes the u8 pixels of its samples. Returns 0; -EBADMSG if it is not a
 * configuration; -EOPNOTSUPP if this library would make another text of it, so
 * it might make other samples, too.
 */
int service_conf_parse(const char *text, size_t bytes,
	struct service_conf *conf, struct settings *s, struct error *err);

#endif

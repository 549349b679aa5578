/* SPDX-License-Identifier: MIT */
/* The configuration of a job as text, one member a line. */
#include "loader/service/service_conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/service/service_state.h"

#define CONF_VERSION "refrain-service 1"
#define CONF_LINE_MAX 128u

/* Members in the order of the text. Every member that changes pixels or the
 * order of examples must be here; a test compares this list with the table of
 * members. */
static const char *const conf_members[] = {"source", "epochs", "seed",
	"echo_point", "shuffle_window", "last", "height", "width", "augment",
	"area_min", "area_max", "aspect_min", "aspect_max", "jitter",
	"max_pixels", "in_order", "no_flip", "no_orient", "pad_ranks",
	"allow_duplicates", "exact", "equal_ranks", "epoch_examples", "subset",
	"subset_seed"};

#define CONF_MEMBERS (sizeof(conf_members) / sizeof(conf_members[0]))

/* -- Writing --------------------------------------------------------------- */

struct conf_writer {
	char *at;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static void conf_put(
	struct conf_writer *w, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(w->at, w->room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= w->room) {
		w->room = 0;
		return;
	}
	w->at += len;
	w->room -= (size_t)len;
}

static void conf_put_word(struct conf_writer *w, const char *words, int32_t n)
{
	size_t len;

	for (; n > 0; n--)
		words += strcspn(words, "|") + 1;
	len = strcspn(words, "|");
	conf_put(w, " %.*s", (int)len, words);
}

static void conf_put_member(struct conf_writer *w,
	const struct refrain_config *c, const struct member *m)
{
	const char *at = (const char *)c + m->offset;

	conf_put(w, "%s", m->name);
	if (m->bit)
		conf_put(w, " %d", (c->flags & m->bit) != 0);
	else if (m->type == REFRAIN_MEMBER_WORD)
		conf_put_word(w, m->arg, *(const int32_t *)(const void *)at);
	else if (m->kind == KIND_U64)
		conf_put(w, " %" PRIu64, *(const uint64_t *)(const void *)at);
	else if (m->kind == KIND_U32)
		conf_put(w, " %" PRIu32, *(const uint32_t *)(const void *)at);
	for (uint32_t i = 0; m->kind == KIND_F32 && i < member_count(m); i++)
		/* nine digits give back every float */
		conf_put(w, "%c%.9g", i ? ',' : ' ',
			(double)((const float *)(const void *)at)[i]);
	conf_put(w, "\n");
}

static int conf_refuse(const struct settings *s, struct error *err)
{
	const char *what = NULL;

	if (s->c.decode || s->c.augment_fn)
		what = "decode() and augment_fn() exist in this process alone";
	else if (s->c.source == REFRAIN_SOURCE_RAW)
		what = "raw records need no preparation";
	else if (settings_tokens(s) || settings_array(s))
		what = "tokens and arrays need no preparation";
	else if (s->fields.count)
		what = "examples have several fields";
	else if (s->c.mix)
		what = "it is a mix";
	else if (s->c.bucket)
		what = "it has buckets";
	return what ? error_set(err, -EOPNOTSUPP,
			      "service: workers cannot prepare this: %s", what)
		    : 0;
}

/* Must the decoder choose one scale for all crops of an image? This depends on
 * whether there are echoes, but not on their number. */
static bool conf_by_image(const struct settings *s)
{
	return s->augment.scale == SCALE_BY_IMAGE;
}

static int conf_write(const struct settings *s, const struct service_conf *conf,
	char text[SERVICE_CONF_MAX], struct error *err)
{
	struct conf_writer w = {text, SERVICE_CONF_MAX};

	conf_put(&w, "%s\ndataset %s\nexamples %" PRIu64 "\n", CONF_VERSION,
		conf->dataset, conf->examples);
	conf_put(&w, "fingerprint %016" PRIx64 "\nprint %016" PRIx64 "\n",
		conf->fingerprint, conf->print);
	conf_put(&w, "by_image %d\n", conf_by_image(s));
	for (size_t i = 0; i < CONF_MEMBERS; i++)
		conf_put_member(&w, &s->c, member_find(conf_members[i]));
	return w.room ? (int)(w.at - text)
		      : error_set(err, -E2BIG,
				"service: the configuration is too long");
}

int service_conf_text(const struct settings *s, const struct service_conf *conf,
	char text[SERVICE_CONF_MAX], struct error *err)
{
	int rc = conf_refuse(s, err);

	return rc < 0 ? rc : conf_write(s, conf, text, err);
}

struct hash128 service_job(const char *text, size_t bytes)
{
	return hash128(text, bytes);
}

/* -- Parsing --------------------------------------------------------------- */

struct conf_reader {
	const char *at, *end;
	char line[CONF_LINE_MAX];
};

/* Take the next line if it is "NAME VALUE". Returns the value, or NULL. */
static const char *conf_line(struct conf_reader *r, const char *name)
{
	const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
	size_t len = strlen(name), all;

	if (!stop)
		return NULL;
	all = (size_t)(stop - r->at);
	if (all >= sizeof(r->line) || memchr(r->at, 0, all))
		return NULL;
	memcpy(r->line, r->at, all);
	r->line[all] = 0;
	r->at = stop + 1;
	if (strncmp(r->line, name, len) != 0 || r->line[len] != ' ')
		return NULL;
	return r->line + len + 1;
}

static bool conf_number(
	struct conf_reader *r, const char *name, int base, uint64_t *out)
{
	const char *value = conf_line(r, name);
	char *end;

	if (!value || !*value)
		return false;
	errno = 0;
	*out = strtoull(value, &end, base);
	return errno == 0 && !*end;
}

static bool conf_head(
	struct conf_reader *r, struct service_conf *conf, bool *by_image)
{
	const char *value = conf_line(r, "refrain-service");
	uint64_t image = 0;

	*conf = (struct service_conf){.examples = 0};
	if (!value || strcmp(value, "1") != 0)
		return false;
	value = conf_line(r, "dataset");
	if (!value || !service_is_id(value, strlen(value)))
		return false;
	(void)snprintf(conf->dataset, sizeof(conf->dataset), "%s", value);
	if (!conf_number(r, "examples", 10, &conf->examples) ||
		!conf_number(r, "fingerprint", 16, &conf->fingerprint) ||
		!conf_number(r, "print", 16, &conf->print) ||
		!conf_number(r, "by_image", 10, &image))
		return false;
	*by_image = image == 1;
	return conf->examples > 0;
}

static int conf_take(struct conf_reader *r, struct service_conf *conf,
	struct refrain_config *c)
{
	bool by_image;

	if (!conf_head(r, conf, &by_image))
		return -EBADMSG;
	for (size_t i = 0; i < CONF_MEMBERS; i++) {
		const char *value = conf_line(r, conf_members[i]);

		if (!value || refrain_config_set(c, conf_members[i], value) < 0)
			return -EBADMSG;
	}
	c->echo = by_image ? 2 : 1;
	return r->at == r->end ? 0 : -EBADMSG;
}

int service_conf_parse(const char *text, size_t bytes,
	struct service_conf *conf, struct settings *s, struct error *err)
{
	struct conf_reader r = {.at = text, .end = text + bytes};
	char again[SERVICE_CONF_MAX];
	struct refrain_config c;
	int len;

	refrain_config_init(&c);
	if (conf_take(&r, conf, &c) < 0)
		return error_set(
			err, -EBADMSG, "it is not the configuration of a job");
	c.type = REFRAIN_U8;
	c.layout = REFRAIN_NHWC;
	c.batch = 1;
	c.dataset = conf->dataset; /* the caller opens another path */
	if (settings_init(s, &c, err) < 0)
		return -EOPNOTSUPP;
	len = service_conf_text(s, conf, again, err);
	if (len < 0)
		return -EOPNOTSUPP;
	if ((size_t)len != bytes || memcmp(again, text, bytes) != 0)
		return error_set(err, -EOPNOTSUPP,
			"another version of refrain has written it");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Fuzz target: JPEGs that are transcoded. Each form either refuses a file with
 * a message, or gives a file that can be transcoded again. The comparison of
 * coefficients never finds a difference. */
#include <errno.h>
#include <string.h>

#include "../unit/jpeg_fixture.h"
#include "fuzz.h"
#include "loader/image/transcode.h"

static const struct transcode_options forms[] = {
	{.form = TRANSCODE_BASELINE},
	{.form = TRANSCODE_RESTART, .restart_mcus = 3},
	{.form = TRANSCODE_PROGRESSIVE},
	{.form = TRANSCODE_QUALITY, .quality = 50},
	{.form = TRANSCODE_QUALITY, .quality = 70, .shorter = 16},
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

static struct transcoder *coders[FORMS];

static void free_coders(void)
{
	for (size_t i = 0; i < FORMS; i++)
		transcoder_free(coders[i]);
}

static void transcode_form(size_t form, const uint8_t *data, size_t size)
{
	struct transcode_info info;
	struct error err = {""};
	const uint8_t *out;
	uint8_t *copy;
	size_t bytes;
	int rc = transcode_probe(coders[form], data, size, &info, &err);

	FUZZ_MUST(rc == 0 || err.msg[0]);
	rc = transcode(coders[form], data, size, "fuzz", &out, &bytes, &err);
	FUZZ_MUST(rc == 0 || err.msg[0]);
	FUZZ_MUST(rc == 0 || rc == -EBADMSG || rc == -EMEDIUMTYPE ||
		rc == -E2BIG);
	if (rc < 0)
		return;
	copy = malloc(bytes);
	FUZZ_MUST(copy);
	memcpy(copy, out, bytes);
	rc = transcode(coders[0], copy, bytes, "again", &out, &bytes, &err);
	/* A coefficient that a progressive file may have can be out of range in
	 * a baseline one. */
	FUZZ_MUST(rc == 0 || rc == -EBADMSG);
	free(copy);
}

static void transcode_one(const uint8_t *data, size_t size)
{
	if (!coders[0])
		(void)atexit(free_coders);
	for (size_t i = 0; i < FORMS && !coders[i]; i++)
		FUZZ_MUST(transcoder_new(&coders[i], &forms[i]) == 0);
	for (size_t i = 0; i < FORMS; i++)
		transcode_form(i, data, size);
}

static size_t transcode_seed(unsigned i, uint8_t *buf)
{
	struct jpeg_file f;

	if (i >= JPEG_KINDS)
		return 0;
	f = jpeg_make(&jpeg_kinds[i], 25 + i % 3, 21 - i % 4, i % 9, i, true);
	FUZZ_MUST(f.bytes <= FUZZ_MAX_BYTES);
	memcpy(buf, f.data, f.bytes);
	free(f.data);
	return f.bytes;
}

const struct fuzz_target fuzz_transcode = {
	"transcode", transcode_one, transcode_seed};

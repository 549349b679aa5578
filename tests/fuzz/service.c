/* SPDX-License-Identifier: MIT */
/* Fuzz target: answers of the servers of the preparation service: states of
 * ranges, notes of readers, lists of ids, values of samples. An input that is
 * accepted must give the same text when it is written again. */
#include <string.h>

#include "fuzz.h"
#include "loader/service/service_conf.h"
#include "loader/service/service_state.h"
#include "loader/service/service_value.h"

static void range_one(const uint8_t *data, size_t size)
{
	char text[RANGE_STATE_MAX];
	struct range_state s, again;
	size_t len;

	if (range_state_parse(data, size, &s) < 0)
		return;
	len = range_state_text(&s, text);
	FUZZ_MUST(len < sizeof(text));
	FUZZ_MUST(range_state_parse(text, len, &again) == 0);
	FUZZ_MUST(s.kind == again.kind && s.nonce == again.nonce);
	FUZZ_MUST(s.mask == again.mask && strcmp(s.store, again.store) == 0);
}

static void note_one(const uint8_t *data, size_t size)
{
	char text[READER_NOTE_MAX];
	struct reader_note n, again;
	size_t len;

	if (reader_note_parse(data, size, &n) < 0)
		return;
	FUZZ_MUST(n.cursor <= n.begin && n.begin <= n.end);
	len = reader_note_text(&n, text);
	FUZZ_MUST(len < sizeof(text));
	FUZZ_MUST(reader_note_parse(text, len, &again) == 0);
	FUZZ_MUST(n.end == again.end && n.state_bytes == again.state_bytes);
}

static void list_one(const uint8_t *data, size_t size)
{
	static char list[ROSTER_MAX];
	size_t at = 0, len, bytes = size < ROSTER_MAX ? size : ROSTER_MAX;
	unsigned n = 0;

	memcpy(list, data, bytes);
	while ((len = roster_next(list, bytes, &at)) > 0) {
		FUZZ_MUST(at + len <= bytes && service_is_id(list + at, len));
		at += len;
		n++;
	}
	bytes = roster_drop(list, bytes, "gpu1");
	len = roster_add(list, bytes, "gpu2");
	FUZZ_MUST(len <= ROSTER_MAX && (len > 0 || n >= ROSTER_NAMES_MAX - 1));
}

static void value_one(const uint8_t *data, size_t size)
{
	uint8_t value[FUZZ_MAX_BYTES + SAMPLE_HEAD_BYTES];
	struct sample_value v = {.bytes = (uint32_t)size}, got;
	const uint8_t *pixels;

	pixels = sample_unseal(data, size, 1, "key", &v);
	FUZZ_MUST(!pixels || pixels + v.bytes == data + size);
	v = (struct sample_value){.maker = 5, .bytes = (uint32_t)size};
	memcpy(value + SAMPLE_HEAD_BYTES, data, size);
	sample_seal(value, 1, "key", &v, data);
	FUZZ_MUST(
		sample_unseal(value, SAMPLE_HEAD_BYTES + size, 1, "key", &got));
	FUZZ_MUST(got.maker == 5 && got.bytes == size);
}

static void conf_one(const uint8_t *data, size_t size)
{
	char text[SERVICE_CONF_MAX];
	struct service_conf conf;
	struct error err = {""};
	struct settings s;
	int rc;

	rc = service_conf_parse((const char *)data, size, &conf, &s, &err);
	FUZZ_MUST(rc == 0 || *err.msg);
	if (rc == 0)
		FUZZ_MUST(
			service_conf_text(&s, &conf, text, &err) == (int)size);
}

static void service_one(const uint8_t *data, size_t size)
{
	range_one(data, size);
	note_one(data, size);
	list_one(data, size);
	value_one(data, size);
	conf_one(data, size);
}

static size_t service_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"T w1.a 0123456789abcdef cpu3:11212",
		"D [fe80::1]:11212 ffffffff 120", "L gpu1-812",
		"0 2 256 1 4096 5 2 100 200 456 5120000 812 gpu1 00ff1234",
		"gpu1 gpu2 a.b-c_d /no",
		"refrain-service 1\ndataset imagenet\nexamples 1281167\n"
		"fingerprint 0000000000001234\nprint ffffffffffffffff\n"
		"by_image 0\nsource auto\nepochs 1\nseed 0\n"
		"echo_point before\nshuffle_window 0\nlast short\n"
		"height 224\nwidth 224\naugment train\n"
		"area_min 0.0799999982\narea_max 1\naspect_min 0.75\n"
		"aspect_max 1.33333337\njitter 0,0,0\n"
		"max_pixels 200000000\nin_order 0\nno_flip 0\n"
		"no_orient 0\npad_ranks 0\nallow_duplicates 0\n"
		"exact 0\nequal_ranks 0\nepoch_examples 0\n"
		"subset 0\nsubset_seed 0\n",
		"RFS1....aaaabbbbccccddddeeee", NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_service = {"service", service_one, service_seed};

/* SPDX-License-Identifier: MIT */
/* Fuzz targets: text that people type, which is sizes, options, and
 * specifications of the synthetic origin and of faults; and JSON that a loader
 * and the origins read. Each input is either accepted or rejected with a
 * message. */
#include <errno.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/option.h"
#include "common/base/size.h"
#include "fuzz.h"
#include "loader/mount_help/help_answer_impl.h"
#include "origin/origin.h"

static void check_answer(int rc, const struct error *err)
{
	FUZZ_MUST(rc >= 0 || err->msg[0] != '\0');
}

/* -- SIZE ------------------------------------------------------------------ */

static void size_one(const uint8_t *data, size_t size)
{
	static const uint64_t wholes[] = {0, 1, 1000003, UINT64_MAX};
	char *text = fuzz_text(data, size), buf[SIZE_TEXT_MAX];

	for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
		struct error err = {""};
		uint64_t bytes = 0;
		int rc = size_parse(text, wholes[i], &bytes, &err);

		check_answer(rc, &err);
		FUZZ_MUST(rc == 0 || rc == -EINVAL || rc == -ERANGE);
		if (rc == 0)
			FUZZ_MUST(size_format(bytes, buf)[0] != '\0');
	}
	free(text);
}

static size_t size_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {"4096", "1.5G", "10%", "0.000001T",
		"16777215T", "18446744073709551615", NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_size = {"size", size_one, size_seed};

/* -- Options --------------------------------------------------------------- */

struct values {
	bool flag;
	const char *text;
	unsigned number, calls;
	uint64_t size;
};

static int call(void *out, const char *value, struct error *err)
{
	((struct values *)out)->calls++;
	return *value == '!' ? error_set(err, -EINVAL, "not that") : 0;
}

#define FIELD(f) offsetof(struct values, f)

static const struct option_def options[] = {
	{"flag", 'f', NULL, "A flag.", OPTION_FLAG, FIELD(flag), NULL, false},
	{"text", 't', "T", "A text.", OPTION_TEXT, FIELD(text), NULL, false},
	{"number", 'n', "N", "A number.", OPTION_NUMBER, FIELD(number), NULL,
		false},
	{"size", 0, "SIZE", "A size.", OPTION_SIZE, FIELD(size), NULL, false},
	{"call", 'c', "X", "A call.", OPTION_CALL, 0, call, false},
	{.name = NULL},
};

static const struct option_usage usage = {
	.name = "test",
	.operands = "A [B]",
	.summary = "None.",
	.options = options,
	.min_operands = 1,
	.max_operands = 2,
};

#define WORDS_MAX 32

/* Each line of the input is a word of the command line. */
static void option_one(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *save = NULL;
	char *argv[WORDS_MAX + 1] = {text};
	struct values v = {.flag = false};
	struct error err = {""};
	int argc = 1, rc;

	for (char *word = strtok_r(text, "\n", &save); word && argc < WORDS_MAX;
		word = strtok_r(NULL, "\n", &save)) {
		argv[argc++] = word;
		(void)option_find(&usage, word, strlen(word));
	}
	rc = option_parse(&usage, argc, argv, &v, &err);
	FUZZ_MUST((rc >= 1 && rc <= 2) || rc == -EINVAL || rc == -ECANCELED);
	check_answer(rc == -ECANCELED ? 0 : rc, &err);
	free(text);
}

static size_t option_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"--flag\nA",
		"A\n--text=x\n--number\n5\n--size\n4K\nB",
		"-fn7\n-tx\n-c\n!\n--\n-f",
		"--call=y\n--help",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_option = {"option", option_one, option_seed};

/* -- Origins --------------------------------------------------------------- */

static void synthetic_one(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct origin *o = NULL;
	struct error err = {""};
	int rc = origin_synthetic_new(&o, text, &err);

	check_answer(rc, &err);
	FUZZ_MUST((rc == 0) == (o != NULL));
	if (o)
		origin_free(o);
	free(text);
}

static size_t synthetic_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"files=10,size=100",
		"files=1300000,size=110K,seed=7,dirs=1000",
		"files=18446744073709551615,size=1,dirs=1",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_synthetic = {
	"synthetic", synthetic_one, synthetic_seed};

static struct timers *timers;
static struct origin *faulty;

static void free_faulty(void)
{
	origin_free(faulty);
	timers_free(timers);
}

static void make_faulty(void)
{
	struct origin *inner;
	struct error err;

	FUZZ_MUST(timers_new(&timers) == 0);
	FUZZ_MUST(origin_synthetic_new(&inner, "files=1,size=1", &err) == 0);
	FUZZ_MUST(origin_fault_new(&faulty, inner, "", timers, &err) == 0);
	(void)atexit(free_faulty);
}

static void fault_one(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct error err = {""};

	if (!faulty)
		make_faulty();
	check_answer(origin_fault_set(faulty, text, &err), &err);
	free(text);
}

static size_t fault_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"delay=5ms,error=0.25,short=1,stall=0",
		"rate=10M,meta=1,match=a/b,seed=0x7",
		"delay=1.5s,,error=1e-3",
		NULL,
	};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_fault = {"fault", fault_one, fault_seed};

/* -- JSON ------------------------------------------------------------------ */

static void json_one(const uint8_t *data, size_t size)
{
	static char dirs[ANSWER_TIERS_MAX][PATH_MAX];
	struct answer_key keys[2];
	struct answer_value value = {"n", 0};
	const char *text = (const char *)data;
	char out[64];
	int rc = json_find(text, size, "key", out, sizeof(out));

	FUZZ_MUST(rc == 0 || rc == -EBADMSG);
	FUZZ_MUST(strlen(out) < sizeof(out));
	/* If the call succeeds, the text must be JSON. */
	FUZZ_MUST(rc == 0 || answer_ok(text, size) < 0);
	(void)answer_keys(text, size, keys, 2);
	(void)answer_values(text, size, &value, 1);
	rc = answer_tiers(text, size, dirs);
	FUZZ_MUST(rc <= (int)ANSWER_TIERS_MAX);
	for (int i = 0; i < rc; i++)
		FUZZ_MUST(memchr(dirs[i], '\0', PATH_MAX));
}

static size_t json_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"{\"a\":{\"key\":\"v\\u00e4\\ud83d\\ude00\"},\"n\":-1e9}",
		"{\"ok\":true,\"keys\":[{\"key\":\"5cb05743b298569658576ab98196"
		"12f9\",\"size\":110000},null],\"n\":7}",
		"{\"ok\":true,\"status\":{\"tiers\":[{\"dir\":\"/fast\"}]}}",
		NULL};

	return fuzz_seed_text(texts, i, buf);
}

const struct fuzz_target fuzz_json = {"json", json_one, json_seed};

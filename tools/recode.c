/* SPDX-License-Identifier: MIT */
/* refrain recode: copies a dataset with its JPEGs re-coded. src/loader/recode
 * does the work. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/escape.h"
#include "common/base/size.h"
#include "command.h"
#include "loader/recode/recode.h"
#include "progress.h"
#include "recode_try.h"

#define QUALITY_MAX 100u
#define RESTART_MAX 65535u /* as a marker has it */
#define SHORTER_MAX 65500u /* as a JPEG has it */

struct recode_args {
	struct recode_options o;
	bool baseline, progressive, restart;
	/* With --try: */
	bool try;
	unsigned images;
	const char *cache, *html;
};

static int take_restart(void *out, const char *value, struct error *err)
{
	struct recode_args *a = out;
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	a->restart = true;
	if (strcmp(value, "row") == 0)
		return 0;
	if (n < 1 || n > RESTART_MAX || *end)
		return error_set(err, -EINVAL,
			"'%s' is not a valid interval; give 'row', or 1 to %u "
			"MCUs",
			value, RESTART_MAX);
	a->o.form.restart_mcus = (unsigned)n;
	return 0;
}

static int take_sampling(void *out, const char *value, struct error *err)
{
	struct recode_args *a = out;

	a->o.form.sampling_420 = strcmp(value, "420") == 0;
	if (!a->o.form.sampling_420 && strcmp(value, "own") != 0)
		return error_set(err, -EINVAL,
			"'%s' is not a valid sampling; give 'own' or '420'",
			value);
	return 0;
}

#define FIELD(f) offsetof(struct recode_args, f)

static const struct option_def recode_table[] = {
	{
		.name = "quality",
		.letter = 'q',
		.arg = "Q",
		.help = "Re-code with loss, to the quality Q of libjpeg, 1 to "
			"100. There is no default.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(o.form.quality),
	},
	{
		.name = "size",
		.letter = 's',
		.arg = "PIXELS",
		.help = "With --quality: shrink each image until its shorter "
			"side has this many pixels. Smaller images keep their "
			"size.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(o.form.shorter),
	},
	{
		.name = "sampling",
		.arg = "own|420",
		.help = "With --quality: the resolution of the chroma. own "
			"keeps that of each file (the default), 420 halves it "
			"in both directions.",
		.kind = OPTION_CALL,
		.call = take_sampling,
	},
	{
		.name = "baseline",
		.help = "Without loss: progressive files become baseline, "
			"which decodes faster, and Huffman tables are made for "
			"each file. This is the default.",
		.kind = OPTION_FLAG,
		.offset = FIELD(baseline),
	},
	{
		.name = "restart",
		.arg = "N|row",
		.help = "Without loss: baseline, with a restart marker after "
			"every N MCUs, or after every row of them.",
		.kind = OPTION_CALL,
		.call = take_restart,
	},
	{
		.name = "progressive",
		.help = "Without loss: all files become progressive, and "
			"DST/recode.index has their levels for 'refrain mount "
			"--drop-bits'.",
		.kind = OPTION_FLAG,
		.offset = FIELD(progressive),
	},
	{
		.name = "again",
		.help = "Allow --quality for files that were re-coded with "
			"loss before.",
		.kind = OPTION_FLAG,
		.offset = FIELD(o.again),
	},
	{
		.name = "shards",
		.arg = "SIZE",
		.help = "Write tar files, each with the files of about SIZE "
			"bytes of SRC.",
		.kind = OPTION_SIZE,
		.offset = FIELD(o.shard_bytes),
	},
	{
		.name = "try",
		.help = "Write no copy. Try all forms on a sample of SRC, and "
			"print what each would give.",
		.kind = OPTION_FLAG,
		.offset = FIELD(try),
	},
	{
		.name = "images",
		.letter = 'n',
		.arg = "N",
		.help = "With --try: number of images to try (default: 200).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(images),
	},
	{
		.name = "cache",
		.arg = "SIZE",
		.help = "With --try: the size of the cache, in bytes or as a "
			"share of SRC such as 20% (default: 35%).",
		.kind = OPTION_TEXT,
		.offset = FIELD(cache),
	},
	{
		.name = "html",
		.arg = "FILE",
		.help = "With --try: also write a page with the table and "
			"with pictures of each form side by side.",
		.kind = OPTION_TEXT,
		.offset = FIELD(html),
	},
	{
		.name = "threads",
		.letter = 't',
		.arg = "T",
		.help = "Number of threads (default: one per processor).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(o.threads),
	},
	{.name = NULL},
};

const struct option_usage recode_usage = {
	.name = "recode",
	.operands = "SRC [DST]",
	.summary = "Copy the dataset SRC to the directory DST with its JPEGs "
		   "re-coded, to read fewer bytes or to decode faster.",
	.options = recode_table,
	.min_operands = 1,
	.max_operands = 2,
};

/* Returns 0, or -EINVAL with a message. */
static int check_form(struct recode_args *a, struct error *err)
{
	struct transcode_options *f = &a->o.form;

	if (a->baseline + a->progressive + a->restart + (f->quality > 0) > 1)
		return error_set(err, -EINVAL,
			"recode: give only one of --baseline, --restart, "
			"--progressive and --quality");
	if (!f->quality && (f->shorter || f->sampling_420 || a->o.again))
		return error_set(err, -EINVAL,
			"recode: --size, --sampling and --again lose "
			"information; name the quality with --quality");
	if (f->quality > QUALITY_MAX || f->shorter > SHORTER_MAX)
		return error_set(err, -EINVAL,
			"recode: --quality must be 1 to %u, --size at most %u",
			QUALITY_MAX, SHORTER_MAX);
	f->form = f->quality	 ? TRANSCODE_QUALITY
		: a->progressive ? TRANSCODE_PROGRESSIVE
		: a->restart	 ? TRANSCODE_RESTART
				 : TRANSCODE_BASELINE;
	return 0;
}

/* Returns 0, or -EINVAL with a message. */
static int check_try(
	const struct recode_args *a, int operands, struct error *err)
{
	if (operands == (a->try ? 1 : 2) &&
		(a->try || (!a->images && !a->cache && !a->html)))
		return 0;
	return error_set(err, -EINVAL,
		a->try ? "recode: with --try, give SRC alone"
			: operands == 2
			? "recode: --images, --cache and --html need --try"
			: "recode: give SRC and DST, or SRC and --try");
}

/* -- The report ------------------------------------------------------------ */

static void print_count(uint64_t n, const char *what)
{
	if (n)
		(void)printf(", %" PRIu64 " %s", n, what);
}

static void recode_print(
	const struct recode_args *a, const struct recode_result *r)
{
	char from[SIZE_TEXT_MAX], to[SIZE_TEXT_MAX];
	const struct recode_counts *c = &r->counts;

	(void)printf("%" PRIu64 " re-coded", c->recoded);
	print_count(c->kept, "kept because re-coding gains nothing");
	print_count(c->odd, "kept because they cannot be re-coded");
	print_count(c->other, "other files copied");
	print_count(r->links, "broken links left out");
	(void)printf("\n%s -> %s", size_format(r->source_bytes, from),
		size_format(c->bytes, to));
	if (r->source_bytes)
		(void)printf(
			" (%.3f)", (double)c->bytes / (double)r->source_bytes);
	(void)printf(", in %s\n", a->o.target);
	if (r->sample.images)
		(void)printf("%u images compared: PSNR %.1f dB (worst %.1f), "
			     "SSIM %.3f (worst %.3f); neither tells the "
			     "accuracy of a training\n",
			r->sample.images, r->sample.psnr, r->sample.psnr_worst,
			r->sample.ssim, r->sample.ssim_worst);
	if (r->first_odd[0]) {
		(void)fputs("kept as it is: ", stdout);
		escape_print(stdout, r->first_odd);
		(void)putchar('\n');
	}
	if (!r->made)
		(void)puts("nothing has changed since the last run");
}

void recode_show(
	void *arg, uint64_t files, uint64_t bytes, uint64_t total_bytes)
{
	progress_show(arg, files, bytes, total_bytes, "");
}

int cmd_recode(int argc, char **argv)
{
	struct recode_args a = {.baseline = false};
	struct recode_result result;
	struct error err = {""};
	struct progress progress;
	int status, rc;
	int n = command_parse(&recode_usage, argc, argv, &a, &status);

	if (n < 0)
		return status;
	if (check_form(&a, &err) < 0 || check_try(&a, n, &err) < 0) {
		(void)fprintf(stderr, "refrain: %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (a.try)
		return recode_try_run(argv[1], a.images, a.cache, a.html);
	a.o.source = argv[1];
	a.o.target = argv[2];
	a.o.show = recode_show;
	a.o.arg = &progress;
	progress_begin(&progress);
	rc = recode_run(&a.o, &result, &err);
	progress_end(&progress);
	if (rc < 0)
		return command_fail("recode", &err);
	recode_print(&a, &result);
	return EXIT_OK;
}

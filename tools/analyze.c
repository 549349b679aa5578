/* SPDX-License-Identifier: MIT */
/* refrain analyze: mounts the source, measures a command that reads the mount,
 * and prints which part of an epoch was spent on what. With a saved profile, it
 * prints the same figures without a measurement. */
#include "analysis/study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze_output.h"
#include "analyze_place.h"
#include "common/base/cleanup.h"
#include "common/base/escape.h"
#include "common/base/size.h"
#include "command.h"
#include "analysis/subject/subject.h"

struct analyze_args {
	struct mount_options options;
	struct analyze_config run;
	const char *cache, *cache_size, *profile_out, *html, *from, *at;
	unsigned samples;
	bool json;
	/* exit status if some files of the analysis could not be removed */
	int left;
};

#define FIELD(f) offsetof(struct analyze_args, f)
#define MOUNT_FIELD(f) offsetof(struct analyze_args, options.f)

static const struct option_def analyze_table[] = {
	{
		.name = "json",
		.help = "Print the profile as one JSON object.",
		.kind = OPTION_FLAG,
		.offset = FIELD(json),
	},
	{
		.name = "profile",
		.arg = "FILE",
		.help = "Save the profile in FILE.",
		.kind = OPTION_TEXT,
		.offset = FIELD(profile_out),
	},
	{
		.name = "html",
		.arg = "FILE",
		.help = "Write the report as a page with plots to FILE.",
		.kind = OPTION_TEXT,
		.offset = FIELD(html),
	},
	{
		.name = "from",
		.arg = "FILE",
		.help = "Report on the profile saved in FILE instead of "
			"measuring.",
		.kind = OPTION_TEXT,
		.offset = FIELD(from),
	},
	{
		.name = "cached",
		.arg = "SIZE",
		.help = "Size of the cache that the report assumes, in bytes "
			"or N% of the dataset (default: 0%, no cache).",
		.kind = OPTION_TEXT,
		.offset = FIELD(at),
	},
	{
		.name = "cache",
		.arg = "DIR",
		.help = "Directory for a temporary copy of the dataset "
			"(default: /dev/shm).",
		.kind = OPTION_TEXT,
		.offset = FIELD(cache),
	},
	{
		.name = "cache-size",
		.arg = "SIZE",
		.help = "Maximum size of that copy. If the dataset is larger, "
			"images in the copy replace the JPEG files that do not "
			"fit (default: 90%, or 50% of /dev/shm).",
		.kind = OPTION_TEXT,
		.offset = FIELD(cache_size),
	},
	{
		.name = "copy",
		.arg = "SECONDS",
		.help = "Copy a dataset of JPEG files for at most SECONDS "
			"(default: 45). Images in the copy replace the rest.",
		.kind = OPTION_NUMBER,
		.offset = FIELD(run.copy_s),
	},
	{
		.name = "seconds",
		.arg = "N",
		.help = "Measure each setting for at most N seconds (default: "
			"20).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(run.seconds),
	},
	{
		.name = "start",
		.arg = "SECONDS",
		.help = "Give up if COMMAND reads nothing for SECONDS at its "
			"start, or for half as long later (default: 120).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(run.start_s),
	},
	{
		.name = "samples",
		.arg = "N",
		.help = "Number of samples in the dataset, if a file holds "
			"several (default: each file is one sample; formats "
			"that hold several are counted in MB).",
		.kind = OPTION_NUMBER,
		.offset = FIELD(samples),
	},
	{
		.name = "no-tiny",
		.help = "Skip the last measurement, which replaces images with "
			"tiny ones to time the trainer without preparation.",
		.kind = OPTION_FLAG,
		.offset = FIELD(run.no_tiny),
	},
	{
		.name = "fault",
		.arg = "SPEC",
		.help = "Make the source slow or faulty, for tests and drills; "
			"see refrain-fault(1).",
		.kind = OPTION_TEXT,
		.offset = MOUNT_FIELD(source.fault),
	},
	{.name = NULL},
};

const struct option_usage analyze_usage = {
	.name = "analyze",
	.operands = "[SOURCE -- COMMAND ...]",
	.summary = "Run COMMAND, a trainer that reads SOURCE, for a few "
		   "minutes and report where the time of an epoch goes and "
		   "what would shorten it.",
	.options = analyze_table,
	.max_operands = OPTION_OPERANDS_ANY,
};

static volatile sig_atomic_t analyze_signal;

static void on_analyze_signal(int number)
{
	analyze_signal = number;
}

static int start_mount(
	struct analyze_place *at, struct analyze_args *args, struct error *err)
{
	struct mount_options *o = &args->options;
	int rc;

	o->mountpoint = at->mountpoint;
	/* Without --cache the tier is in memory, which the trainer needs, too:
	 * so the tier gets only a half. */
	o->tiers[0] = (struct tier_config){.dir = at->tier,
		.size = args->cache_size ? args->cache_size
			: args->cache	 ? "90%"
					 : "50%"};
	o->ntiers = 1;
	/* flush before the fork: the daemon would print the buffer again */
	(void)fflush(NULL);
	rc = subject_run(o, err);
	at->mounted = rc == 0;
	return rc;
}

/* -- The command ----------------------------------------------------------- */

/* Copy a word and replace each {} by `path`. The caller frees the copy. */
static char *replace_braces(const char *word, const char *path)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	for (const char *at; to && (at = strstr(word, "{}")); word = at + 2)
		(void)fprintf(to, "%.*s%s", (int)(at - word), word, path);
	if (to && fputs(word, to) >= 0 && fclose(to) == 0)
		return text;
	return NULL;
}

/* Replace {} by `path` in all words. Returns 1 if a word had a {}, else 0. The
 * copies are freed only at the end of the process. */
static int set_words(char **words, const char *path, struct error *err)
{
	int found = 0;

	for (size_t i = 0; words[i]; i++) {
		if (!strstr(words[i], "{}"))
			continue;
		found = 1;
		words[i] = replace_braces(words[i], path);
		if (!words[i])
			return error_set(err, -ENOMEM, "%m");
	}
	return found;
}

static int set_command(struct analyze_args *args,
	const struct analyze_place *at, char **words, char source[PATH_MAX],
	struct error *err)
{
	const char *name = args->options.source.name;
	int rc = set_words(words, at->mountpoint, err);

	args->run.command = words;
	args->run.mountpoint = at->mountpoint;
	args->run.stop = &analyze_signal;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (strchr(name, ':') && access(name, F_OK) < 0)
		return error_set(err, -EINVAL,
			"'%s' is not a directory here; write {} in COMMAND "
			"instead of the path of the dataset",
			name);
	if (!realpath(name, source))
		return error_set(err, -errno, "cannot use '%s': %m", name);
	args->run.source = source;
	return 0;
}

/* Write the command into the profile as the user typed it. */
static void note_command(struct profile *p, char **words)
{
	/* longer than the profile's text, which is cut */
	char all[2 * sizeof(p->command)];
	size_t at = 0;

	all[0] = '\0';
	for (size_t i = 0; words[i] && at < sizeof(all) - 1; i++) {
		(void)snprintf(all + at, sizeof(all) - at, "%s%s", i ? " " : "",
			words[i]);
		at = strlen(all);
	}
	(void)escape_text(p->command, sizeof(p->command), all);
}

static void catch_analyze_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = on_analyze_signal}, was;

	(void)sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		/* These calls cannot fail. Under nohup, SIGHUP stays ignored.
		 */
		if (sigaction(numbers[i], NULL, &was) == 0 &&
			was.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], &act, NULL);
}

static int measure_command(struct analyze_args *args, char **words,
	struct profile *p, struct error *err)
{
	const char *top = args->cache ? args->cache : "/dev/shm";
	const char *tmp = getenv("TMPDIR");
	struct analyze_place at = {.mounted = false};
	char source[PATH_MAX];
	struct error left;
	int rc;

	if (!tmp || !*tmp)
		tmp = "/tmp";

	/* From now on, files must be removed at the end. So a signal must not
	 * end this process. The daemon handles signals by itself. */
	catch_analyze_signals();
	note_command(p, words);
	place_remove_left(tmp, top);
	rc = place_make(&at, tmp, top, err);
	if (rc == 0)
		rc = set_command(args, &at, words, source, err);
	if (rc == 0)
		rc = start_mount(&at, args, err);
	if (rc == 0)
		rc = analyze_run(&args->run, p, err);
	/* Print the report although the mount could not be removed. */
	if (place_remove(&at, &left) < 0)
		args->left = command_fail("analyze", &left);
	return rc;
}

/* -- The profile ----------------------------------------------------------- */

static int load_profile(const char *path, struct profile *p, struct error *err)
{
	json_error_t why;
	json_t *json = json_load_file(path, 0, &why);
	int rc;

	if (!json)
		return error_set(
			err, -EINVAL, "cannot read '%s': %s", path, why.text);
	rc = profile_parse(json, p, err);
	json_decref(json);
	return rc < 0 ? error_wrap(err, rc, "cannot use '%s'", path) : 0;
}

static int set_cached(
	const struct analyze_args *args, struct profile *p, struct error *err)
{
	uint64_t bytes;
	int rc;

	if (!args->at)
		return 0;
	rc = size_parse(args->at, p->source_bytes, &bytes, err);
	if (rc < 0)
		return error_wrap(err, rc, "--cached");
	p->cached = (double)bytes / (double)p->source_bytes;
	if (p->cached > 1)
		p->cached = 1;
	return 0;
}

static void put_html(FILE *to, const void *p)
{
	profile_html(p, to);
}

static void put_json(FILE *to, const void *json)
{
	(void)json_dumpf(json, to, JSON_INDENT(2) | JSON_ENSURE_ASCII);
}

/* Write the files, then print the report. The report comes last because its
 * reader may close the pipe. It is printed although a file could not be
 * written. */
static int put_profile(const struct analyze_args *args, const struct profile *p,
	struct error *err)
{
	json_t *json = profile_json(p);
	int rc = json ? 0 : error_set(err, -ENOMEM, "%m");

	if (!json)
		return rc;
	if (args->profile_out)
		rc = output_write(args->profile_out, put_json, json, err);
	if (rc == 0 && args->html)
		rc = output_write(args->html, put_html, p, err);
	if (args->json) {
		put_json(stdout, json);
		(void)fputc('\n', stdout); /* main() looks for write errors */
	} else {
		profile_report(p, stdout);
	}
	json_decref(json);
	return rc;
}

/* -- Options --------------------------------------------------------------- */

static int check_analyze_options(
	const struct analyze_args *args, struct error *err)
{
	struct profile any = {.source_bytes = UINT32_MAX};
	int rc = set_cached(args, &any, err);

	/* Check the files first, so that no measurement is wasted. */
	if (rc == 0)
		rc = output_check(args->profile_out, err);
	return rc < 0 ? rc : output_check(args->html, err);
}

int cmd_analyze(int argc, char **argv)
{
	struct analyze_args args = {
		.options = {.limit_bytes = MOUNT_LIMIT_BYTES,
			.source.timeout_s = MOUNT_TIMEOUT_S,
			.verify = true,
			.log_level = EVENT_NOTICE},
		.run = {.seconds = 20, .start_s = 120, .copy_s = 45},
	};
	struct profile p = {.cpus = 1};
	struct error err = {""};
	int status, rc;
	int n = command_parse(&analyze_usage, argc, argv, &args, &status);

	if (n < 0)
		return status;
	if (args.from ? n > 0 : n < 2) {
		(void)fputs("refrain: analyze: give SOURCE -- COMMAND ..., or "
			    "--from FILE alone: see 'refrain analyze --help'\n",
			stderr);
		return EXIT_USAGE;
	}
	/* the options of `analyze` come after the operands of the command */
	argv[n + 1] = NULL;
	args.options.source.name = argv[1];
	args.run.samples = args.samples;
	rc = check_analyze_options(&args, &err);
	if (rc == 0)
		rc = args.from ? load_profile(args.from, &p, &err)
			       : measure_command(&args, argv + 2, &p, &err);
	if (rc == 0)
		rc = set_cached(&args, &p, &err);
	if (rc == 0)
		rc = put_profile(&args, &p, &err);
	return rc < 0 ? command_fail("analyze", &err) : args.left;
}

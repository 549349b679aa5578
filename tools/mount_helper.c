/* SPDX-License-Identifier: MIT */
/* mount.refrain: the helper of mount(8) for the file system type `refrain`,
 * which lines of fstab use, too. It translates the options of -o to the command
 * line of `refrain mount`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/base/array.h"
#include "common/base/cleanup.h"
#include "common/base/near.h"
#include "command.h"
#include "upgrade.h"

/* Options that mount(8) and systemd add by themselves. */
static const char *const generic[] = {"rw", "ro", "defaults", "auto", "noauto",
	"user", "nouser", "users", "owner", "group", "_netdev", "nofail",
	"suid", "nosuid", "dev", "nodev", "exec", "noexec", "atime", "noatime",
	"relatime", "norelatime", "strictatime", "nodiratime", "diratime",
	"lazytime", "nolazytime", "sync", "async", "dirsync", "silent", "loud",
	"mand", "nomand", "iversion", "noiversion", NULL};

struct helper_args {
	bool sloppy; /* -s: ignore unknown options */
	bool fake;   /* -f: do everything except the mount */
	bool ignored;
	const char *ignored_text;
	/* the texts of all -o options, with commas between them; allocated */
	char *list;
};

static int add_list(void *out, const char *value, struct error *err)
{
	struct helper_args *args = out;
	char *list = NULL;

	if (asprintf(&list, "%s%s%s", args->list ? args->list : "",
		    args->list ? "," : "", value) < 0)
		return error_set(err, -ENOMEM, "%m");
	free(args->list);
	args->list = list;
	return 0;
}

#define FIELD(f) offsetof(struct helper_args, f)

static const struct option_def helper_table[] = {
	{"options", 'o', "OPTIONS", "The options of the mount.", OPTION_CALL, 0,
		add_list, false},
	{"sloppy", 's', NULL, "Ignore unknown options.", OPTION_FLAG,
		FIELD(sloppy), NULL, false},
	{"fake", 'f', NULL, "Do everything but mount.", OPTION_FLAG,
		FIELD(fake), NULL, false},
	{"no-mtab", 'n', NULL, "Ignored.", OPTION_FLAG, FIELD(ignored), NULL,
		false},
	{"verbose", 'v', NULL, "Ignored.", OPTION_FLAG, FIELD(ignored), NULL,
		false},
	{"types", 't', "TYPE", "Ignored.", OPTION_TEXT, FIELD(ignored_text),
		NULL, false},
	{.name = NULL},
};

static const struct option_usage helper_usage = {
	.name = "mount",
	.operands = "SOURCE MOUNTPOINT",
	.summary = "Mount on behalf of mount(8).",
	.options = helper_table,
	.min_operands = 2,
	.max_operands = 2,
};

static bool is_generic(const char *word)
{
	if (strncmp(word, "x-", 2) == 0 || strncmp(word, "X-", 2) == 0 ||
		strncmp(word, "comment=", 8) == 0)
		return true;
	for (const char *const *g = generic; *g; g++)
		if (strcmp(*g, word) == 0)
			return true;
	return false;
}

/* The command line of `refrain mount`, word by word. The words are allocated.
 */
struct words {
	char **v;
	int n;
	size_t room;
	/* "-o remount": change the options of an existing mount */
	bool remount;
};

static int add_word(struct words *w, const char *dashes, const char *text)
{
	if (ARRAY_ROOM(w->v, (size_t)w->n + 1, &w->room) < 0 ||
		asprintf(&w->v[w->n], "%s%s", dashes, text) < 0)
		return -ENOMEM;
	w->v[++w->n] = NULL;
	return 0;
}

static void words_release(struct words *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->v[i]);
	free(w->v);
}

static int unknown_word(const char *word, struct error *err)
{
	struct near near = {.given = word, .len = strcspn(word, "=")};
	char text[NEAR_TEXT_MAX];

	for (const struct option_def *o = option_table(&mount_usage); o->name;
		o++)
		if (o->help)
			near_try(&near, o->name);
	return error_set(err, -EINVAL,
		"unknown option '%s'%s; see refrain-mount(1)", word,
		near_text(&near, "", text));
}

/* Handle one option of -o: of refrain, of mount(8), or unknown. */
static int add_option(
	struct words *w, const char *word, bool sloppy, struct error *err)
{
	const struct option_def *o;
	int rc = 0;

	if (!*word || is_generic(word))
		return 0;
	if (strcmp(word, "remount") == 0) {
		w->remount = true;
		return 0;
	}
	o = option_find(&mount_usage, word, strcspn(word, "="));
	if (!o && !sloppy)
		return unknown_word(word, err);
	if (o)
		rc = add_word(w, "--", word);
	return rc < 0 ? error_set(err, rc, "%m") : 0;
}

/* Cut the next element off the list, without its quotes: in quotes a comma is a
 * part of a value. Returns NULL at the end. */
static char *next_element(char **list)
{
	char *word = *list, *in = word, *out = word;
	bool quoted = false;

	if (!*word)
		return NULL;
	for (; *in && (quoted || *in != ','); in++) {
		if (*in == '"')
			quoted = !quoted;
		else
			*out++ = *in;
	}
	*list = *in ? in + 1 : in;
	*out = '\0';
	return word;
}

static bool quotes_are_closed(const char *list)
{
	size_t n = 0;

	while ((list = strchr(list, '"'))) {
		list++;
		n++;
	}
	return n % 2 == 0;
}

static int add_options(
	struct words *w, char *list, bool sloppy, struct error *err)
{
	const char *word;
	int rc = 0;

	if (!quotes_are_closed(list))
		return error_set(
			err, -EINVAL, "a quote is not closed: %s", list);
	while (rc == 0 && (word = next_element(&list)))
		rc = add_option(w, word, sloppy, err);
	return rc;
}

static int make_words(struct words *w, const struct helper_args *args,
	char **operands, struct error *err)
{
	int rc = add_word(w, "", "mount");

	if (rc == 0 && args->list) {
		rc = add_options(w, args->list, args->sloppy, err);
		if (rc < 0)
			return rc;
	}
	if (rc == 0)
		rc = add_word(w, "", "--");
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = add_word(w, "", operands[i]);
	return rc < 0 ? error_set(err, rc, "%m") : 0;
}

/* Send the options to the daemon that serves the mount. The daemon reports the
 * options that cannot be changed. */
static int change_options(const struct words *w, const char *mountpoint)
{
	json_t *options = json_array();
	int status;

	for (int i = 1; i < w->n && strcmp(w->v[i], "--") != 0; i++) {
		const char *name = w->v[i] + 2, *value = strchr(name, '=');
		size_t len = value ? (size_t)(value - name) : strlen(name);

		(void)json_array_append_new(options,
			json_pack(
				"[s%, s]", name, len, value ? value + 1 : ""));
	}
	status = upgrade_run(mountpoint, NULL, options);
	json_decref(options);
	return status;
}

static int mount_helper_run(const struct helper_args *args, char **argv)
{
	struct error err = {""};
	struct words w = {.v = NULL};
	int rc = make_words(&w, args, argv + 1, &err), status;

	if (rc < 0) {
		(void)command_fail("mount", &err);
		status = rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	} else if (args->fake) {
		status = EXIT_OK;
	} else if (w.remount) {
		status = change_options(&w, argv[2]);
	} else {
		status = cmd_mount(w.n, w.v);
	}
	words_release(&w);
	return status;
}

int mount_helper(int argc, char **argv)
{
	struct helper_args args = {.list = NULL};
	int status;

	/* ps and top show this name instead of "mount.refrain". */
	(void)prctl(PR_SET_NAME, "refrain"); /* cannot fail */
	if (command_parse(&helper_usage, argc, argv, &args, &status) >= 0)
		status = mount_helper_run(&args, argv);
	free(args.list);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* refrain mount: parses the options of a mount and passes them to the daemon.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/size.h"
#include "common/format/jpeg_levels.h"
#include "mount/cache/cache.h"
#include "command.h"
#include "analysis/subject/subject.h"
#include "mount/daemon/command_words.h"
#include "mount/daemon/daemon.h"
#include "mount/fs/fs.h"
#include "exporter_options.h"
#include "far_options.h"
#include "holder.h"
#include "peer_options.h"

/* Values for options that were not given. They differ from 0, because 0 is a
 * valid value on the command line. The daemon represents them as 0. */
#define REVALIDATE_NEVER UINT_MAX
#define STAGING_BY_MEMORY UINT64_MAX

struct mount_args {
	struct mount_options options;
	char *dirs[STORE_TIERS_MAX]; /* memory for options.tiers[].dir */
	char *root;		     /* memory for options.root */
	struct peer_list peers;	     /* memory for options.peers */
	bool no_hold;
	const char *metrics;
	bool analysis;
	unsigned recover_s;
};

/* Parse DIR:SIZE. DIR may have colons, so the last colon splits the text. */
static int mount_add_cache(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;
	struct mount_options *o = &args->options;
	const char *colon = strrchr(value, ':');
	uint64_t bytes;
	char *dir;
	int rc;

	if (!colon || colon == value || !colon[1])
		return error_set(err, -EINVAL,
			"'%s' is not DIR:SIZE, as in /dev/shm/cache:64G",
			value);
	/* This only checks the size: the daemon computes a percentage when it
	 * opens the tier. */
	rc = size_parse(colon + 1, UINT64_MAX, &bytes, err);
	if (rc < 0)
		return rc;
	if (bytes == 0)
		return error_set(err, -EINVAL,
			"'%s': the size must not be 0; give some bytes, as in "
			"/dev/shm/cache:64G",
			value);
	if (o->ntiers == STORE_TIERS_MAX)
		return error_set(err, -EINVAL,
			"at most %d caches are "
			"supported",
			STORE_TIERS_MAX);
	dir = strndup(value, (size_t)(colon - value));
	if (!dir)
		return error_set(err, -ENOMEM, "%m");
	args->dirs[o->ntiers] = dir;
	o->tiers[o->ntiers++] =
		(struct tier_config){.dir = dir, .size = colon + 1};
	return 0;
}

/* Parse DIR[:SIZE]. What follows the last colon is a size if it looks like one.
 */
static int mount_set_root(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;
	const char *colon = strrchr(value, ':');
	uint64_t bytes;

	if (args->root)
		return error_set(err, -EINVAL, "only one root is supported");
	if (!*value)
		return error_set(err, -EINVAL, "the directory must be named");
	args->root = strdup(value);
	if (!args->root)
		return error_set(err, -ENOMEM, "%m");
	args->options.root.root = args->root;
	if (!colon || colon == value || strchr(colon, '/'))
		return 0;
	if (size_parse(colon + 1, UINT64_MAX, &bytes, err) < 0)
		return -EINVAL;
	args->root[colon - value] = '\0';
	args->options.root.size = colon + 1;
	return 0;
}

static int mount_set_keep_free(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;
	uint64_t bytes;

	args->options.keep_free = value;
	return size_parse(value, UINT64_MAX, &bytes, err);
}

static int set_verify(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;

	args->options.verify = strcmp(value, "always") == 0;
	if (args->options.verify || strcmp(value, "never") == 0)
		return 0;
	return error_set(
		err, -EINVAL, "'%s' is neither 'always' nor 'never'", value);
}

static int mount_add_peers(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;

	return peer_list_add(&args->peers, value, err);
}

static int mount_read_secret(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;

	return peer_list_read_secret(&args->peers, value, err);
}

static int set_log_level(void *out, const char *value, struct error *err)
{
	struct mount_args *args = out;

	for (int i = EVENT_ERROR; i <= EVENT_INFO; i++) {
		if (strcmp(event_level_name((enum event_level)i), value) != 0)
			continue;
		args->options.log_level = (enum event_level)i;
		return 0;
	}
	return error_set(err, -EINVAL,
		"'%s' is not a level; use error, warning, notice or info",
		value);
}

#define FIELD(f) offsetof(struct mount_args, options.f)
#define SOURCE_FIELD(f) FIELD(source.f)
#define CONTEXT(option, field, text)                                           \
	{                                                                      \
		.name = option, .arg = "CONTEXT", .help = text,                \
		.kind = OPTION_TEXT, .offset = FIELD(contexts.field)           \
	}

static const struct option_def mount_table[] = {
	{
		.name = "cache",
		.arg = "DIR:SIZE",
		.help = "Keep up to SIZE of the dataset in the directory DIR. "
			"Repeat the option for each tier, fastest first. SIZE "
			"takes K, M, G, T, or N% of the file system.",
		.kind = OPTION_CALL,
		.call = mount_add_cache,
	},
	{
		.name = "cache-root",
		.arg = "DIR[:SIZE]",
		.help = "Keep the dataset in a cache of its own in DIR, whose "
			"datasets together use up to SIZE, which is then "
			"remembered (default: 90% of the file system). As a "
			"tier it comes after those of --cache.",
		.kind = OPTION_CALL,
		.call = mount_set_root,
	},
	{
		.name = "keep-free",
		.arg = "SIZE|N%",
		.help = "Cache nothing more while the file system of a cache "
			"has less space free than that, or less than the same "
			"share of its inodes.",
		.kind = OPTION_CALL,
		.call = mount_set_keep_free,
	},
	{
		.name = "foreground",
		.letter = 'f',
		.help = "Stay in the foreground until unmounted.",
		.kind = OPTION_FLAG,
		.offset = FIELD(foreground),
	},
	{
		.name = "no-hold",
		.help = "Do not start refrain-hold(1), so that the mount ends "
			"when its daemon dies. With --foreground no "
			"refrain-hold is started anyway.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct mount_args, no_hold),
	},
	{
		.name = "metrics",
		.arg = "ADDR:PORT|unix:PATH",
		.help = "Also start 'refrain exporter' on this address; it "
			"ends after the unmount. For containers; elsewhere "
			"one exporter serves all mounts of a host.",
		.kind = OPTION_TEXT,
		.offset = offsetof(struct mount_args, metrics),
	},
	{
		.name = "check-takeover",
		.help = "Only check that this program could go on with a "
			"mount; refrain-upgrade(1) uses it.",
		.kind = OPTION_FLAG,
		.offset = FIELD(check),
	},
	{
		.name = "check-requests",
		.help = "As --check-takeover, where the kernel cannot send "
			"requests again.",
		.kind = OPTION_FLAG,
		.offset = FIELD(check),
	},
	{
		.name = "recover-timeout",
		.arg = "SECONDS",
		.help = "If the daemon dies, let readers wait up to SECONDS "
			"for the next one to serve (default: 30). Then the "
			"mount ends.",
		.kind = OPTION_NUMBER,
		.offset = offsetof(struct mount_args, recover_s),
	},
	{
		.name = "limit",
		.arg = "SIZE",
		.help = "Cache files up to SIZE as a whole, and larger ones in "
			"chunks. At least 64K (default: 16M, or less in a "
			"small memory control group).",
		.kind = OPTION_SIZE,
		.offset = FIELD(limit_bytes),
	},
	{
		.name = "chunk",
		.arg = "SIZE",
		.help = "Size of the chunks of larger files, a multiple of 64K "
			"(default: 256K; from s3 and http 1M).",
		.kind = OPTION_SIZE,
		.offset = FIELD(chunk_bytes),
	},
	{
		.name = "staging",
		.arg = "SIZE",
		.help = "Memory for data that is being fetched or does not fit "
			"the cache. At least four times the larger of --limit "
			"and --chunk (default: 256M, or less in a memory "
			"control group).",
		.kind = OPTION_SIZE,
		.offset = FIELD(staging_bytes),
	},
	{
		.name = "pages",
		.arg = "SIZE",
		.help = "Let items that do not fit the cache use up to SIZE of "
			"the kernel's page cache; the oldest pages are dropped "
			"first (default: no limit). Pages younger than 100 ms "
			"are dropped only if SIZE is exceeded by 64M.",
		.kind = OPTION_SIZE,
		.offset = FIELD(pages_bytes),
	},
	{
		.name = "revalidate",
		.arg = "SECONDS",
		.help = "Ask the origin whether a file has changed, at most "
			"once every SECONDS per file (default: only on "
			"'refrain refresh').",
		.kind = OPTION_NUMBER,
		.offset = FIELD(revalidate_s),
	},
	{
		.name = "verify",
		.arg = "always|never",
		.help = "Verify the checksums on each read from the cache, "
			"always (default) or never.",
		.kind = OPTION_CALL,
		.call = set_verify,
	},
	{
		.name = "allow-other",
		.help = "Let other users read the mount, as far as the files' "
			"modes permit.",
		.kind = OPTION_FLAG,
		.offset = FIELD(allow_other),
	},
	CONTEXT("context", context,
		"Let SELinux take CONTEXT for that of all files. The kernel "
		"gets this and the next options; see mount(8)."),
	CONTEXT("fscontext", fscontext, "The context of the file system."),
	CONTEXT("defcontext", defcontext, "The context of unlabelled files."),
	CONTEXT("rootcontext", rootcontext, "The context of the mountpoint."),
	{
		.name = "analysis",
		.help = "Count every read of a file, verify nothing, and "
			"let refrain-analyze(1) hide cached files and replace "
			"images. For measurements only.",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct mount_args, analysis),
	},
	{
		.name = "group",
		.arg = "GROUP",
		.help = "Let members of GROUP control the mount and read all "
			"files in its cache, regardless of their modes; to "
			"reach the mount itself, they need --allow-other too.",
		.kind = OPTION_TEXT,
		.offset = FIELD(group),
	},
	{
		.name = "timeout",
		.arg = "SECONDS",
		.help = "Fail a request to the origin, including its retries, "
			"after SECONDS (default: 120).",
		.kind = OPTION_NUMBER,
		.offset = SOURCE_FIELD(timeout_s),
	},
	FAR_OPTIONS(SOURCE_FIELD),
	{
		.name = "manifest",
		.arg = "FILE|URL",
		.help = "Read the names of the files from an index written by "
			"'refrain index' instead of listing the source. For "
			"s3:// and https:// only.",
		.kind = OPTION_TEXT,
		.offset = SOURCE_FIELD(manifest),
	},
	{
		.name = "peers",
		.arg = PEER_LIST_HELP,
		.help = "Cache the dataset in the memory of these hosts, each "
			"of which runs memcached -M. All hosts must give the "
			"same list. FILE has one host per line.",
		.kind = OPTION_CALL,
		.call = mount_add_peers,
	},
	{
		.name = "peer-name",
		.arg = "HOST[:PORT]",
		.help = "Name of this host in the list of --peers (default: "
			"the one entry that matches this machine's name or "
			"address).",
		.kind = OPTION_TEXT,
		.offset = FIELD(peers.name),
	},
	{
		.name = "peer-secret",
		.arg = "FILE",
		.help = "Use the contents of FILE as the key of the checksums "
			"of shared data. The file must be the same on all "
			"hosts.",
		.kind = OPTION_CALL,
		.call = mount_read_secret,
	},
	{
		.name = "peer-dataset",
		.arg = "NAME",
		.help = "Name of the dataset that all peers use, needed if "
			"they mount it from different paths (default: SOURCE).",
		.kind = OPTION_TEXT,
		.offset = FIELD(peers.dataset),
	},
	{
		.name = "log-level",
		.arg = "LEVEL",
		.help = "Log messages of LEVEL and above: error, warning, "
			"notice (the default) or info.",
		.kind = OPTION_CALL,
		.call = set_log_level,
	},
	{
		.name = "log-file",
		.arg = "FILE",
		.help = "Append the log to FILE; SIGHUP reopens it (default: "
			"standard error or the journal; syslog(3) in the "
			"background).",
		.kind = OPTION_TEXT,
		.offset = FIELD(log_file),
	},
	{
		.name = "log-json",
		.help = "Log one JSON object per line.",
		.kind = OPTION_FLAG,
		.offset = FIELD(log_json),
	},
	{
		.name = "drop-bits",
		.arg = "1|2",
		.help = "Show each progressive JPEG without the lowest bits of "
			"its coefficients, as a smaller file; others whole. "
			"Levels come from --levels, from --manifest, or from "
			"SOURCE/recode.index.",
		.kind = OPTION_NUMBER,
		.offset = SOURCE_FIELD(drop_bits),
	},
	{
		.name = "levels",
		.arg = "FILE",
		.help = "Path or URL of an index made by 'refrain index "
			"--levels', for --drop-bits.",
		.kind = OPTION_TEXT,
		.offset = SOURCE_FIELD(levels),
	},
	{
		.name = "fault",
		.arg = "SPEC",
		.help = "Make the origin slow or faulty, for tests and drills; "
			"see refrain-fault(1).",
		.kind = OPTION_TEXT,
		.offset = SOURCE_FIELD(fault),
	},
	{.name = NULL},
};

const struct option_usage mount_usage = {
	.name = "mount",
	.operands = "SOURCE MOUNTPOINT",
	.summary = "Mount the dataset SOURCE at MOUNTPOINT, read-only, behind "
		   "a cache that never evicts. MOUNTPOINT /dev/fd/N is an open "
		   "/dev/fuse that another program has mounted.",
	.options = mount_table,
	.min_operands = 2,
	.max_operands = 2,
};

static int refuse(const char *why)
{
	struct error err;

	(void)error_set(&err, -EINVAL, "%s", why);
	(void)command_fail("mount", &err);
	return EXIT_USAGE;
}

/* Check the options about peers. Returns false after printing a message if an
 * option is missing that another one needs. */
static bool mount_take_peers(struct mount_args *args)
{
	struct peers_config *p = &args->options.peers;

	p->host = (const char *const *)args->peers.host;
	p->nhosts = args->peers.n;
	p->secret = args->peers.secret;
	p->secret_bytes = args->peers.secret_bytes;
	if (p->nhosts == 0 && (p->name || p->secret || p->dataset))
		(void)refuse("--peer-name, --peer-secret and --peer-dataset "
			     "need --peers");
	else if (p->dataset && !*p->dataset)
		(void)refuse("--peer-dataset must not be empty");
	else if (p->name && !peer_list_has(&args->peers, p->name))
		(void)refuse("--peer-name is not in the list of --peers; write "
			     "it exactly as there");
	else
		return true;
	return false;
}

/* Check what the table of options cannot. Returns EXIT_OK or EXIT_USAGE. */
static int mount_check(struct mount_options *o)
{
	struct error err;

	if (o->source.timeout_s == 0)
		return refuse("--timeout must not be 0");
	if (o->source.drop_bits > JPEG_DROP_BITS_MAX)
		return refuse("--drop-bits must be 1 or 2");
	if (o->revalidate_s == 0)
		return refuse("--revalidate must not be 0; omit it to see "
			      "changes only on 'refrain refresh'");
	if (o->revalidate_s == REVALIDATE_NEVER)
		o->revalidate_s = 0;
	/* Without --chunk the source chooses a size that fits the limit. */
	if (cache_check_sizes(
		    o->limit_bytes ? o->limit_bytes : MOUNT_LIMIT_BYTES,
		    o->chunk_bytes ? o->chunk_bytes : ENTRY_BLOCK_BYTES,
		    o->staging_bytes == STAGING_BY_MEMORY ? MOUNT_STAGING_BYTES
							  : o->staging_bytes,
		    &err) == 0)
		return EXIT_OK;
	(void)command_fail("mount", &err);
	return EXIT_USAGE;
}

/* Whether this process has to start the exporter. A command that mounts in the
 * background does so before there is a holder. `refrain hold -- refrain mount
 * --foreground` has no such command, so the first daemon does. If a daemon was
 * started again, the exporter of the first one runs. */
static bool starts_exporter(const struct mount_args *args)
{
	const char *held = getenv("REFRAIN_HELD");

	if (!args->metrics || args->options.check)
		return false;
	return !held ||
		(args->options.foreground && strcmp(held, "first") == 0);
}

static int mount_run(
	struct mount_args *args, char **argv, const struct command_words *words)
{
	struct error err = {""};
	struct mount_options *o = &args->options;
	int rc;

	o->source.name = argv[1];
	o->mountpoint = argv[2];
	/* The program that passed the connection waits for this process. */
	if (fs_given_connection(o->mountpoint) >= 0)
		o->foreground = true;
	if (!mount_take_peers(args))
		return EXIT_USAGE;
	if (o->peers.nhosts > 0 && !o->peers.name)
		o->peers.name = peer_list_self(&args->peers);
	rc = mount_check(o);
	if (rc != EXIT_OK)
		return rc;
	o->held = getenv("REFRAIN_HELD") != NULL;
	o->words = words->v;
	o->nwords = words->n;
	if (starts_exporter(args) &&
		exporter_start(args->metrics, o->mountpoint, &err) < 0)
		return command_fail("mount", &err);
	if (!o->foreground && !o->held && !o->check && !args->no_hold) {
		rc = holder_start(
			words->v, (int)words->n, args->recover_s, &err);
		if (rc >= 0)
			return rc;
		if (rc != -ENOENT)
			return command_fail("mount", &err);
	}
	if (o->staging_bytes == STAGING_BY_MEMORY)
		o->staging_bytes = 0;
	rc = args->analysis ? subject_run(o, &err) : daemon_run(o, &err);
	if (rc < 0)
		(void)command_fail("mount", &err);
	if (rc == 0 && o->check)
		return MOUNT_CAN_TAKE_OVER;
	if (rc == -EFBIG) /* -EFBIG: the tier is larger than its file system */
		return EXIT_USAGE;
	return rc < 0 ? EXIT_FAILED : EXIT_OK;
}

static int mount_parse(const struct command_words *words)
{
	/* option_parse() changes the order of the words, so it gets a copy. */
	CLEANUP_FREE char **argv = calloc(words->n + 1, sizeof(*argv));
	struct mount_args args = {
		.options =
			{
				.staging_bytes = STAGING_BY_MEMORY,
				.verify = true,
				.source.timeout_s = MOUNT_TIMEOUT_S,
				.log_level = EVENT_NOTICE,
				.revalidate_s = REVALIDATE_NEVER,
			},
		.recover_s = HOLDER_RECOVER_S,
	};
	struct error err;
	int status;

	if (!argv) {
		(void)error_set(&err, -ENOMEM, "%m");
		return command_fail("mount", &err);
	}
	memcpy(argv, words->v, words->n * sizeof(*argv));
	if (command_parse(&mount_usage, (int)words->n, argv, &args, &status) >=
		0)
		status = args.options.ntiers == 0 && !args.root
			? refuse("--cache DIR:SIZE or --cache-root DIR is "
				 "required: see 'refrain mount --help'")
			: mount_run(&args, argv, words);
	for (size_t i = 0; i < args.options.ntiers; i++)
		free(args.dirs[i]);
	free(args.root);
	peer_list_release(&args.peers);
	return status;
}

int cmd_mount(int argc, char **argv)
{
	struct command_words words = {.v = NULL};
	struct error err;
	int status, rc = command_words_of(&words, argc, argv);

	if (rc == 0) {
		status = mount_parse(&words);
	} else {
		(void)error_set(&err, rc, "%m");
		status = command_fail("mount", &err);
	}
	command_words_release(&words);
	return status;
}

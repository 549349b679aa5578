/* SPDX-License-Identifier: MIT */
/* refrain serve: hosts a share until its jobs have left, so that no job has to.
 * One thread besides those of the library. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include <poll.h>

#include "common/base/cleanup.h"
#include "common/base/size.h"
#include "command.h"
#include "config_options.h"
#include "loader/share/share_host_serve.h"

struct serve_options {
	struct refrain_config config;
	bool drop_last;
	unsigned timeout_s;
};

static const struct option_def serve_own[] = {
	{"drop-last", 0, NULL, "Drop the last batch of the run if it is short.",
		OPTION_FLAG, offsetof(struct serve_options, drop_last), NULL,
		false},
	{"timeout", 0, "SECONDS",
		"Fail if the dataset does not answer for SECONDS when it is "
		"opened (default: 60; 0 waits for ever).",
		OPTION_NUMBER, offsetof(struct serve_options, timeout_s), NULL,
		false},
	{.name = NULL},
};

static const struct config_choice serve_choices[] = {
	CONFIG_RUN_CHOICES,
	{"share", NULL, 0, true, false},
	CONFIG_LEFT_OUT("echo_log"),
	CONFIG_LEFT_OUT("service"),
	CONFIG_LEFT_OUT("service_dataset"),
	CONFIG_LEFT_OUT("service_local"),
	CONFIG_LEFT_OUT("service_secret"),
	CONFIG_LEFT_OUT("share_slow"),
	CONFIG_LEFT_OUT("share_grace_s"),
	{.member = NULL},
};

static struct config_options serve_members = {
	.own = serve_own, .choices = serve_choices, .all = true};

static const struct option_def *serve_build(void)
{
	return config_options_table(&serve_members);
}

static int serve_set(void *out, const struct option_def *option,
	const char *value, struct error *err)
{
	struct serve_options *o = out;

	return config_options_set(
		&serve_members, &o->config, option, value, err);
}

const struct option_usage serve_usage = {
	.name = "serve",
	.operands = "DATASET ...",
	.summary = "Prepare batches of DATASET for the jobs of a share, until "
		   "the last of them has left.",
	.build = serve_build,
	.set = serve_set,
	.min_operands = 1,
	.max_operands = OPTION_OPERANDS_ANY,
};

/* Returns a descriptor that becomes readable when a signal asks this command to
 * end. */
static int serve_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL); /* cannot fail */
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void serve_wait(const struct loader_host *h, int signals)
{
	struct pollfd p[2] = {{.fd = loader_host_fd(h), .events = POLLIN},
		{.fd = signals, .events = POLLIN}};

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
}

static int serve_run(
	const struct serve_options *o, int signals, struct error *err)
{
	struct refrain_stats stats;
	struct loader_host *h;
	char bytes[SIZE_TEXT_MAX];
	int rc = loader_host_open(&h, &o->config, err);

	if (rc < 0)
		return rc;
	(void)printf("share '%s' waits for jobs\n", o->config.share);
	(void)fflush(stdout); /* main() checks for write errors */
	serve_wait(h, signals);
	rc = loader_host_close(h, &stats, err);
	if (rc == 0)
		(void)printf("share '%s' has ended: %" PRIu64
			     " examples decoded, %s read\n",
			o->config.share, stats.decodes,
			size_format(stats.bytes_read, bytes));
	return rc;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_options o = {.timeout_s = 60};
	CLEANUP_FREE char *datasets = NULL;
	CLEANUP_FD int signals = -1;
	struct error err = {""};
	int status, rc, n;

	refrain_config_init(&o.config);
	n = command_parse(&serve_usage, argc, argv, &o, &status);
	if (n < 0)
		return status;
	datasets = command_lines(argv, n);
	o.config.dataset = datasets;
	o.config.open_timeout_ms = config_timeout_ms(o.timeout_s);
	if (o.drop_last)
		o.config.last = REFRAIN_LAST_DROP;
	signals = serve_signals();
	rc = datasets ? serve_run(&o, signals, &err)
		      : error_set(&err, -ENOMEM, "%m");
	if (rc < 0)
		(void)command_fail("serve", &err);
	return rc == -EINVAL ? EXIT_USAGE : rc < 0 ? EXIT_FAILED : EXIT_OK;
}

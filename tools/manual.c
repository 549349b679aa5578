/* SPDX-License-Identifier: MIT */
/*
 * Fills in the tables of manual pages. A line "@OPTIONS name@" becomes the
 * options of that command; "@COMMANDS@", "@COUNTERS@", "@GAUGES@" and
 * "@MESSAGES@" (the log's) become these tables. "@VERSION@" in any line becomes
 * the version.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/counters.h"
#include "common/base/events.h"
#include "command.h"
#include "mount/daemon/gauges.h"

static void print_entry(const char *name, const char *unit, const char *help)
{
	(void)printf(".TP\n\\fB%s\\fR", name);
	if (unit)
		(void)printf(" (%s)", unit);
	(void)printf("\n\\&%s\n", help);
}

static void fill_commands(void)
{
	for (const struct command *c = command_table; c->name; c++)
		(void)printf(".TP\n\\fBrefrain\\-%s\\fR(1)\n\\&%s\n", c->name,
			c->summary);
}

static void fill_counters(void)
{
	for (const struct counter_info *c = counter_table; c->name; c++)
		print_entry(c->name, c->unit, c->help);
}

static void fill_gauges(const struct gauge *table)
{
	for (; table->name; table++)
		print_entry(table->name, table->unit, table->help);
}

/* Print a message of the log. Words such as PATH replace its placeholders. */
static void print_message(const char *text)
{
	static const char letters[] = "pdens+";
	static const char *const words[] = {
		"PATH", "DIR", "ERROR", "N", "TEXT", "s"};
	const char *at;

	(void)printf("\\&");
	for (; *text; text++) {
		at = *text == '%' && text[1] ? strchr(letters, text[1]) : NULL;
		if (at) {
			(void)printf("\\fI%s\\fR", words[at - letters]);
			text++;
		} else {
			(void)putchar(*text);
		}
	}
	(void)putchar('\n');
}

static void fill_messages(void)
{
	for (size_t i = 0; i < EVENT_KINDS; i++) {
		const struct event_info *e = &event_table[i];

		(void)printf(".TP\n\\fB%s\\fR (%s)\n", e->name,
			event_level_name(e->level));
		print_message(e->message);
		(void)printf(".br\n\\&%s\n", e->action);
	}
}

static int manual_fill_options(char *line)
{
	char *name = line + strlen("@OPTIONS ");

	name[strcspn(name, "@")] = '\0';
	for (const struct command *c = command_table; c->name; c++) {
		if (strcmp(c->name, name) != 0 || !c->usage)
			continue;
		option_print_man(c->usage, stdout);
		return EXIT_OK;
	}
	(void)fprintf(stderr, "refrain: '%s' has no options\n", name);
	return EXIT_FAILED;
}

static void fill_version(const char *line)
{
	const char *mark = strstr(line, "@VERSION@");

	if (mark)
		(void)printf("%.*s" PACKAGE_VERSION "%s", (int)(mark - line),
			line, mark + strlen("@VERSION@"));
	else
		(void)fputs(line, stdout);
}

static int fill_line(char *line)
{
	if (strncmp(line, "@OPTIONS ", 9) == 0)
		return manual_fill_options(line);
	if (strcmp(line, "@COMMANDS@\n") == 0)
		fill_commands();
	else if (strcmp(line, "@COUNTERS@\n") == 0)
		fill_counters();
	else if (strcmp(line, "@MESSAGES@\n") == 0)
		fill_messages();
	else if (strcmp(line, "@GAUGES@\n") == 0)
		fill_gauges(gauge_table);
	else if (strcmp(line, "@TIER_GAUGES@\n") == 0)
		fill_gauges(tier_gauge_table);
	else if (strcmp(line, "@PEER_GAUGES@\n") == 0)
		fill_gauges(peer_gauge_table);
	else
		fill_version(line);
	return EXIT_OK;
}

int manual_fill(void)
{
	CLEANUP_FREE char *line = NULL;
	size_t room = 0;
	int status = EXIT_OK;

	while (status == EXIT_OK && getline(&line, &room, stdin) > 0)
		status = fill_line(line);
	return status;
}

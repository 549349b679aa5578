/* SPDX-License-Identifier: MIT */
/* Builds options from the members of the loader's configuration. */
#include "config_options.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static const struct config_choice *choice_of(
	const struct config_options *o, const char *member)
{
	const struct config_choice *c = o->choices;

	for (; c->member; c++)
		if (strcmp(c->member, member) == 0)
			return c;
	return NULL;
}

static bool is_own(const struct config_options *o, const char *name)
{
	for (const struct option_def *d = o->own; d->name; d++)
		if (strcmp(d->name, name) == 0)
			return true;
	return false;
}

/* Write the name of the option for a member: '-' replaces '_'. Returns `name`.
 */
static const char *name_for(char *name, const char *member)
{
	size_t n = strlen(member);

	assert(n < CONFIG_OPTION_NAME_MAX);
	for (size_t i = 0; i <= n; i++)
		name[i] = member[i] == '_' ? '-' : member[i];
	return name;
}

static void add_member(struct config_options *o, const struct refrain_member *m)
{
	const struct config_choice *c = choice_of(o, m->name);
	const char *name = name_for(o->names[o->n], m->name);

	if (c ? c->left_out : !o->all)
		return;
	if (c && c->name)
		name = c->name;
	if (is_own(o, name))
		return;
	assert(o->n < CONFIG_OPTIONS_MAX);
	o->table[o->n++] = (struct option_def){
		.name = name,
		.letter = c ? c->letter : '\0',
		.arg = m->arg,
		.help = m->help,
		.kind = OPTION_SET,
		.required = c && c->required,
	};
}

/* Build the table. The members come before the options of the program: members
 * say what the loader does, options say how the program runs it. */
const struct option_def *config_options_table(struct config_options *o)
{
	struct refrain_member m = {.size = sizeof(m)};

	if (o->n)
		return o->table;
	for (uint32_t i = 0; refrain_config_member(i, &m) > 0; i++)
		add_member(o, &m);
	for (const struct option_def *d = o->own; d->name; d++) {
		assert(o->n < CONFIG_OPTIONS_MAX);
		o->table[o->n++] = *d;
	}
	return o->table;
}

/* Returns the name of the option for a member. It differs from the member's
 * name only if a choice says so. */
const char *config_options_name(
	const struct config_options *o, const char *member, size_t n)
{
	for (unsigned i = 0; i < o->n; i++) {
		const char *own = o->names[i];
		size_t k = 0;

		if (o->table[i].kind != OPTION_SET)
			continue;
		while (k < n && own[k] == (member[k] == '_' ? '-' : member[k]))
			k++;
		if (k == n && !own[k])
			return o->table[i].name;
	}
	return NULL;
}

/* Returns the loader's message about a member, without the member's name at its
 * front. The caller adds the name of the option. */
static const char *message_of(const char *member)
{
	const char *message = refrain_message(NULL);
	size_t n = strlen(member);

	if (strncmp(message, member, n) == 0 && message[n] == ':')
		message += n + 2;
	return message;
}

int config_options_set(const struct config_options *o,
	struct refrain_config *config, const struct option_def *option,
	const char *value, struct error *err)
{
	const struct config_choice *c = o->choices;
	char member[CONFIG_OPTION_NAME_MAX];
	int rc;

	while (c->member && (!c->name || strcmp(c->name, option->name) != 0))
		c++;
	(void)snprintf(member, sizeof(member), "%s",
		/* config_options_name() gave this name, so it has room */
		c->member ? c->member : option->name);
	for (char *at = member; *at; at++)
		*at = *at == '-' ? '_' : *at;
	rc = refrain_config_set(config, member, value ? value : "1");
	return rc < 0 ? error_set(err, rc, "%s", message_of(member)) : 0;
}

int config_timeout_ms(unsigned seconds)
{
	if (!seconds)
		return -1;
	return seconds < INT_MAX / 1000 ? (int)seconds * 1000 : INT_MAX;
}

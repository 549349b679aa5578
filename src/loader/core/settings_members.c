/* SPDX-License-Identifier: MIT */
/*
 * The members of examples that a configuration needs. Nothing needs any yet:
 * this is where tests put theirs.
 */
#include "loader/core/settings.h"

int settings_members(struct settings *s, struct error *err)
{
	(void)err;
	s->members = (struct settings_members){.text = NULL};
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The members of examples that a configuration needs. No option needs members
 * yet. Tests replace this function to ask for members of their own.
 */
#include "loader/core/settings.h"

int settings_members(struct settings *s, struct error *err)
{
	(void)err;
	s->members = (struct settings_members){.text = NULL};
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The runner that all unit tests share. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_S 60

TCase *case_of(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_set_timeout(t, TIMEOUT_S);
	suite_add_tcase(s, t);
	return t;
}

int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	/* What a test said before it failed is told, too. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
